/*
 * Two functions in assembly, with two carry chains each (mulx touches no flag, adcx only CF, adox only OF), and
 * the rest of the reduction in C: what it leaves is below 8 r and comes down by a table of multiples.
 * Functions and not inline assembly: compilers did not find the registers.
 */
#include "numa/circuit/fr_wide.h"

#ifdef __x86_64__

#include <cpuid.h>
#include <immintrin.h>
#include <pthread.h>

static bool available;
static pthread_once_t available_once = PTHREAD_ONCE_INIT;

/* clang 14 knows no __builtin_cpu_supports("adx"). Asked once: under a hypervisor CPUID is a trap. */
static void ask_cpu(void)
{
    unsigned eax, ebx, ecx, edx;

    available = __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && ebx & bit_BMI2 && ebx & bit_ADX;
}

bool fr_wide_available(void)
{
    pthread_once(&available_once, ask_cpu);
    return available;
}

/* d0..d4 += 256 bits at `at` * rdx, d4 being new. */
#define ROW(at, d0, d1, d2, d3, d4)                                                \
    "xorq " d4 ", " d4 "\n\t" /* clears both flags too */                          \
    "mulxq 0(" at "), %rax, %rcx\n\tadcxq %rax, " d0 "\n\tadoxq %rcx, " d1 "\n\t"  \
    "mulxq 8(" at "), %rax, %rcx\n\tadcxq %rax, " d1 "\n\tadoxq %rcx, " d2 "\n\t"  \
    "mulxq 16(" at "), %rax, %rcx\n\tadcxq %rax, " d2 "\n\tadoxq %rcx, " d3 "\n\t" \
    "mulxq 24(" at "), %rax, %rcx\n\tadcxq %rax, " d3 "\n\tadoxq %rcx, " d4 "\n\t" \
    "movl $0, %eax\n\tadcxq %rax, " d4 "\n\t"

#define PROLOGUE(name)                                                          \
    ".text\n\t.p2align 5\n\t.globl " name "\n\t.hidden " name "\n\t.type " name \
    ", @function\n" name ":\n\t.cfi_startproc\n\t"                              \
    "pushq %rbx\n\t.cfi_adjust_cfa_offset 8\n\t.cfi_rel_offset %rbx, 0\n\t"     \
    "pushq %rbp\n\t.cfi_adjust_cfa_offset 8\n\t.cfi_rel_offset %rbp, 0\n\t"     \
    "pushq %r12\n\t.cfi_adjust_cfa_offset 8\n\t.cfi_rel_offset %r12, 0\n\t"     \
    "pushq %r13\n\t.cfi_adjust_cfa_offset 8\n\t.cfi_rel_offset %r13, 0\n\t"     \
    "pushq %r14\n\t.cfi_adjust_cfa_offset 8\n\t.cfi_rel_offset %r14, 0\n\t"     \
    "pushq %r15\n\t.cfi_adjust_cfa_offset 8\n\t.cfi_rel_offset %r15, 0\n\t"

#define EPILOGUE(name)                                                                     \
    "popq %r15\n\t.cfi_adjust_cfa_offset -8\n\tpopq %r14\n\t.cfi_adjust_cfa_offset -8\n\t" \
    "popq %r13\n\t.cfi_adjust_cfa_offset -8\n\tpopq %r12\n\t.cfi_adjust_cfa_offset -8\n\t" \
    "popq %rbp\n\t.cfi_adjust_cfa_offset -8\n\tpopq %rbx\n\t.cfi_adjust_cfa_offset -8\n\t" \
    "ret\n\t.cfi_endproc\n\t.size " name ", .-" name "\n"

/* acc rdi, a rsi, b rdx -> rbx, len rcx -> rbp, b_stride r8 -> red zone. Each product is made in r8..r15 and added
 * in memory: with the accumulator in registers the carries of every row would run through all of it. */
__asm__(PROLOGUE("fr_wide_add_dot") //
        "movq %rdx, %rbx\n\tmovq %r8, -8(%rsp)\n\tmovq %rcx, %rbp\n\ttestq %rbp, %rbp\n\tjz 2f\n"
        "1:\tmovq 0(%rbx), %rdx\n\t"
        "mulxq 0(%rsi), %r8, %r9\n\t"
        "mulxq 8(%rsi), %rax, %r10\n\taddq %rax, %r9\n\t"
        "mulxq 16(%rsi), %rax, %r11\n\tadcq %rax, %r10\n\t"
        "mulxq 24(%rsi), %rax, %r12\n\tadcq %rax, %r11\n\tadcq $0, %r12\n\t"
        "movq 8(%rbx), %rdx\n\t" ROW("%rsi", "%r9", "%r10", "%r11", "%r12", "%r13")   //
        "movq 16(%rbx), %rdx\n\t" ROW("%rsi", "%r10", "%r11", "%r12", "%r13", "%r14") //
        "movq 24(%rbx), %rdx\n\t" ROW("%rsi", "%r11", "%r12", "%r13", "%r14", "%r15") //
        "addq %r8, 0(%rdi)\n\tadcq %r9, 8(%rdi)\n\tadcq %r10, 16(%rdi)\n\tadcq %r11, 24(%rdi)\n\t"
        "adcq %r12, 32(%rdi)\n\tadcq %r13, 40(%rdi)\n\tadcq %r14, 48(%rdi)\n\t"
        "adcq %r15, 56(%rdi)\n\tadcq $0, 64(%rdi)\n\t"
        "addq $32, %rsi\n\taddq -8(%rsp), %rbx\n\tdecq %rbp\n\tjnz 1b\n"
        "2:\t" EPILOGUE("fr_wide_add_dot"));

/* out[0..3] rdi = (in[0..3] rsi + a multiple of the modulus rdx that clears them) / 2^256, at most r. Each row's
 * multiplier makes the lowest word 0; minus_inverse rcx is -1 / r mod 2^64. */
void fr_wide_clear_low(uint64_t out[4], const uint64_t in[4], const uint64_t modulus[4],
                       uint64_t minus_inverse) __attribute__((visibility("hidden")));
__asm__(PROLOGUE("fr_wide_clear_low") //
        "movq %rdx, %rbx\n\tmovq %rcx, %rbp\n\t"
        "movq 0(%rsi), %r8\n\tmovq 8(%rsi), %r9\n\tmovq 16(%rsi), %r10\n\tmovq 24(%rsi), %r11\n\t"
        "movq %r8, %rdx\n\timulq %rbp, %rdx\n\t"                              //
        ROW("%rbx", "%r8", "%r9", "%r10", "%r11", "%r12")                     //
        "movq %r9, %rdx\n\timulq %rbp, %rdx\n\t"                              //
        ROW("%rbx", "%r9", "%r10", "%r11", "%r12", "%r13")                    //
        "movq %r10, %rdx\n\timulq %rbp, %rdx\n\t"                             //
        ROW("%rbx", "%r10", "%r11", "%r12", "%r13", "%r14")                   //
        "movq %r11, %rdx\n\timulq %rbp, %rdx\n\t"                             //
        ROW("%rbx", "%r11", "%r12", "%r13", "%r14", "%r15")                   //
        "movq %r12, 0(%rdi)\n\tmovq %r13, 8(%rdi)\n\tmovq %r14, 16(%rdi)\n\t" //
        "movq %r15, 24(%rdi)\n\t" EPILOGUE("fr_wide_clear_low"));

/* k * r for k = 0..7, five words each. */
static const uint64_t multiples[8][5] = {
    {UINT64_C(0x0000000000000000), UINT64_C(0x0000000000000000), UINT64_C(0x0000000000000000),
     UINT64_C(0x0000000000000000), 0},
    {UINT64_C(0xffffffff00000001), UINT64_C(0x53bda402fffe5bfe), UINT64_C(0x3339d80809a1d805),
     UINT64_C(0x73eda753299d7d48), 0},
    {UINT64_C(0xfffffffe00000002), UINT64_C(0xa77b4805fffcb7fd), UINT64_C(0x6673b0101343b00a),
     UINT64_C(0xe7db4ea6533afa90), 0},
    {UINT64_C(0xfffffffd00000003), UINT64_C(0xfb38ec08fffb13fc), UINT64_C(0x99ad88181ce5880f),
     UINT64_C(0x5bc8f5f97cd877d8), 1},
    {UINT64_C(0xfffffffc00000004), UINT64_C(0x4ef6900bfff96ffb), UINT64_C(0xcce7602026876015),
     UINT64_C(0xcfb69d4ca675f520), 1},
    {UINT64_C(0xfffffffb00000005), UINT64_C(0xa2b4340efff7cbfa), UINT64_C(0x002138283029381a),
     UINT64_C(0x43a4449fd0137269), 2},
    {UINT64_C(0xfffffffa00000006), UINT64_C(0xf671d811fff627f9), UINT64_C(0x335b103039cb101f),
     UINT64_C(0xb791ebf2f9b0efb1), 2},
    {UINT64_C(0xfffffff900000007), UINT64_C(0x4a2f7c14fff483f8), UINT64_C(0x6694e838436ce825),
     UINT64_C(0x2b7f9346234e6cf9), 3},
};

/* The assembler's carry flag is out of reach in C; these keep it where the compiler can see it. */
static uint8_t add_carry(uint8_t carry, uint64_t a, uint64_t b, uint64_t *out)
{
    unsigned long long sum;

    carry = _addcarry_u64(carry, a, b, &sum);
    *out = sum;
    return carry;
}

static uint8_t subtract_borrow(uint8_t borrow, uint64_t a, uint64_t b, uint64_t *out)
{
    unsigned long long difference;

    borrow = _subborrow_u64(borrow, a, b, &difference);
    *out = difference;
    return borrow;
}

void fr_wide_add(struct fr_wide *acc, const fr_t *a)
{
    uint8_t carry = 0;

    for (int i = 0; i < 4; i++)
        carry = add_carry(carry, acc->l[4 + i], a->l[i], &acc->l[4 + i]);
    acc->l[8] += carry;
}

void fr_wide_reduce(fr_t *out, const struct fr_wide *acc)
{
    uint64_t low[4], x[5], rest[5], less[4];
    uint8_t carry = 0, borrow = 0;

    fr_wide_clear_low(low, acc->l, multiples[1], UINT64_C(0xfffffffeffffffff));
    for (int i = 0; i < 4; i++)
        carry = add_carry(carry, acc->l[4 + i], low[i], &x[i]);
    x[4] = acc->l[8] + carry;
    /* The quotient by r from the top ten bits, at most one too small: r begins with 0x73, 0x74 rounds up. */
    const uint64_t quotient = (x[4] << 8 | x[3] >> 56) * 565 >> 16;
    for (int i = 0; i < 5; i++)
        borrow = subtract_borrow(borrow, x[i], multiples[quotient][i], &rest[i]);
    borrow = 0;
    for (int i = 0; i < 4; i++)
        borrow = subtract_borrow(borrow, rest[i], multiples[1][i], &less[i]);
    memcpy(out->l, borrow ? rest : less, sizeof(out->l));
}

#else

#include <assert.h>

bool fr_wide_available(void)
{
    return false;
}

void fr_wide_add_dot(struct fr_wide *acc, const fr_t *a, const fr_t *b, size_t len, size_t b_stride)
{
    (void)acc, (void)a, (void)b, (void)len, (void)b_stride;
    assert(!"available on x86-64 alone");
}

void fr_wide_add(struct fr_wide *acc, const fr_t *a)
{
    (void)acc, (void)a;
    assert(!"available on x86-64 alone");
}

void fr_wide_reduce(fr_t *out, const struct fr_wide *acc)
{
    (void)out, (void)acc;
    assert(!"available on x86-64 alone");
}

#endif
