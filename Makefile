# proofd: one Makefile, no recursion. Targets: all check check-files bench fuzz lint format install demo clean.
# Variables: BUILD (object directory), SAN (sanitizers, as -fsanitize takes them), BLST_SRC (a blst source
# tree), PREFIX, DESTDIR, V=1 (show commands), CFLAGS, LDFLAGS (added after ours). CC (with CXX) may compile for another machine.

CC ?= gcc
CXX ?= g++
PREFIX ?= /usr/local
BUILD ?= build
SAN ?=
V ?= 0
Q := $(if $(filter 1,$(V)),,@)

# What CC compiles for. Libraries of another machine's are where Debian puts them.
TARGET := $(shell $(CC) -dumpmachine 2>/dev/null)
ARCH := $(firstword $(subst -, ,$(TARGET)))
CROSS := $(filter-out $(shell uname -m),$(ARCH))
PKG_CONFIG ?= $(if $(CROSS),PKG_CONFIG_LIBDIR=/usr/lib/$(TARGET)/pkgconfig:/usr/share/pkgconfig )pkg-config
BASELINE := $(if $(filter x86_64,$(ARCH)),-march=x86-64-v2)
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla $(if $(CI),-Werror)
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all)
# Sanitized code takes twice as long to compile with all optimizations, and is none the better checked; arithmetic has them, for it runs for minutes.
OPTIMIZE := $(if $(SAN),-O1,-O2)
# Reports of sanitizers name lines, which is all that is asked of them.
DEBUG := $(if $(SAN),-g1,-g)
$(BUILD)/numa/%.o $(BUILD)/gpu/%.o $(BUILD)/tests/lib/%.o: OPTIMIZE := -O2
PKGS := fuse3 libcrypto libzstd zlib numa libseccomp
PKG_CFLAGS = $(shell $(PKG_CONFIG) --cflags $(PKGS) 2>/dev/null)
PKG_LIBS = $(shell $(PKG_CONFIG) --libs $(PKGS) 2>/dev/null)
CHECK_LIBS = $(shell $(PKG_CONFIG) --libs check)

# blst: outside our tree, pinned by checksum (tests/lib/get-blst.sh), built once for a BUILD directory.
BLST_SRC ?=
BLST := $(if $(BLST_SRC),$(BLST_SRC),build/deps/blst)
BLST_LIB := $(BUILD)/blst/libblst.a

OUR_CFLAGS = -std=c11 $(OPTIMIZE) $(DEBUG) $(BASELINE) $(WARN) $(SANFLAGS) -I. -isystem $(BLST)/bindings \
	-D_GNU_SOURCE -DFUSE_USE_VERSION=312 -DPROOFD_LIBDIR=\"$(PREFIX)/lib/proofd\" -pthread $(PKG_CFLAGS) -MMD -MP
# C++ only where it must be: near CUDA, in the tests of code that host and device share, and near gRPC.
OUR_CXXFLAGS = -std=c++17 $(OPTIMIZE) $(DEBUG) $(BASELINE) $(filter-out -Wstrict-prototypes -Wmissing-prototypes,$(WARN)) $(SANFLAGS) \
	-I. -isystem $(BLST)/bindings -D_GNU_SOURCE -pthread $(PKG_CFLAGS) -MMD -MP
LIBS = $(BLST_LIB) $(PKG_LIBS) -lpthread -lm

# CUDA: one shared object, opened at run time by gpu/backend_cuda.c. CUDA_ARCHS: compute capabilities without the dot, or `all`;
# PTX of the last one serves later chips.
NVCC ?= $(if $(CROSS),,$(shell command -v nvcc))
CUDA_ARCHS ?= 90
CUDA_ALL_ARCHS := 80 86 89 90 100 120
CUDA_ARCH_LIST := $(if $(filter all,$(CUDA_ARCHS)),$(CUDA_ALL_ARCHS),$(CUDA_ARCHS))
CUDA_GENCODE := $(foreach a,$(CUDA_ARCH_LIST),-gencode arch=compute_$(a),code=sm_$(a)) \
	-gencode arch=compute_$(lastword $(CUDA_ARCH_LIST)),code=compute_$(lastword $(CUDA_ARCH_LIST))
comma := ,
OUR_NVCCFLAGS = -std=c++17 -O3 $(CUDA_GENCODE) -I. -isystem $(BLST)/bindings -D_GNU_SOURCE -MMD -MP \
	-Xcompiler -fPIC,-g,-Wall,-Wextra,-Wno-unknown-pragmas,-pthread$(if $(CI),$(comma)-Werror)
CUDA_OBJS := $(patsubst %.cu,$(BUILD)/%.o,$(wildcard gpu/cuda/*.cu))
# Sanitizers do without: they cannot see into it.
CUDA_LIB := $(if $(NVCC),$(if $(SAN),,$(BUILD)/libproofd-cuda.so))
GPU_TESTS := $(patsubst %.cu,$(BUILD)/%,$(wildcard tests/gpu/test_*.cu)) $(patsubst %.c,$(BUILD)/%,$(wildcard tests/gpu/test_*.c))
GPU_BENCHES := $(patsubst %.cu,$(BUILD)/%,$(wildcard tests/gpu/bench_*.cu))

PROGRAM_SRCS := daemon/main.c daemon/engine.c daemon/ctl.c
LIB_SRCS := $(filter-out $(PROGRAM_SRCS),$(wildcard numa/*.c numa/circuit/*.c gpu/*.c gpu/cpu/*.c \
	daemon/*.c fuse/*.c))
LIB_OBJS := $(LIB_SRCS:%.c=$(BUILD)/%.o)
LIB := $(BUILD)/libproofd.a
PROGRAMS := $(if $(wildcard daemon/main.c),$(BUILD)/proofd) \
	$(if $(wildcard daemon/engine.c),$(BUILD)/proofd-engine) \
	$(if $(wildcard daemon/ctl.c),$(BUILD)/proofctl)

# The interface for Curio: built where Debian's gRPC is, and without sanitizers unless GRPC names its plugin. GRPC= leaves it out.
GRPC ?= $(if $(CROSS)$(SAN),,$(shell $(PKG_CONFIG) --exists grpc++ protobuf 2>/dev/null && command -v grpc_cpp_plugin))
GRPC_PROGRAM := $(if $(GRPC),$(BUILD)/proofd-grpc)
GRPC_GEN := $(BUILD)/generated
GRPC_OBJS := $(patsubst %.cc,$(BUILD)/%.o,$(wildcard daemon/grpc/*.cc)) $(patsubst %.c,$(BUILD)/%.o,$(wildcard daemon/grpc/*.c)) \
	$(GRPC_GEN)/proofd.pb.o $(GRPC_GEN)/proofd.grpc.pb.o
GRPC_LIBS = -Wl,--no-as-needed -lgrpc++_reflection -Wl,--as-needed \
	-lgrpc++ -lgrpc -lgpr -lprotobuf -labsl_synchronization
TEST_LIB_SRCS := $(wildcard tests/lib/*.c)
TEST_LIB := $(BUILD)/libtest.a
UNIT_TESTS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/unit/test_*.c)) \
	$(patsubst %.cc,$(BUILD)/%,$(wildcard tests/unit/test_*.cc))
CXX_TESTS := $(patsubst %.cc,$(BUILD)/%,$(wildcard tests/unit/test_*.cc))
BENCHES := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/bench/bench_*.c))
SYSTEM_HELPERS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/system/*.c doc/examples/*.c))
FUZZERS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/fuzz/fuzz_*.c))

.PHONY: all cuda check check-faults bench-pipeline check-gpu sanitize-gpu pipes-gpu check-vm soak check-deb deb bench-gpu gpu-tests gpu-benches check-unit check-system check-grpc check-files check-sanitized check-threads unit-tests system-helpers benches fuzzers bench bench-witness experiments fuzz check-fleet lint format install install-grpc demo clean deps
.DELETE_ON_ERROR:
.SECONDARY:

# Where nvcc is, the CUDA object too; NVCC= leaves it out.
all: $(PROGRAMS) $(CUDA_LIB) $(GRPC_PROGRAM)

cuda: $(CUDA_LIB)

$(BUILD)/%.o: %.c | $(BLST)/bindings/blst.h
	@mkdir -p $(@D)
	@$(if $(Q),echo "  CC    $<")
	$(Q)$(CC) $(OUR_CFLAGS) $(CFLAGS) -c $< -o $@

$(BUILD)/%.o: %.cc | $(BLST)/bindings/blst.h
	@mkdir -p $(@D)
	@$(if $(Q),echo "  CXX   $<")
	$(Q)$(CXX) $(OUR_CXXFLAGS) $(CXXFLAGS) -c $< -o $@

# Vectorized twins of plain code, chosen at run time.
$(BUILD)/%_avx2.o: OUR_CFLAGS += $(if $(filter x86_64,$(ARCH)),-mavx2 -mfma)
$(BUILD)/%_ifma.o: OUR_CFLAGS += $(if $(filter x86_64,$(ARCH)),-mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512ifma)

$(BUILD)/%.o: %.cu | $(BLST)/bindings/blst.h
	@mkdir -p $(@D)
	@$(if $(Q),echo "  NVCC  $<")
	$(Q)$(NVCC) $(OUR_NVCCFLAGS) $(NVCCFLAGS) -c $< -o $@

$(LIB): $(LIB_OBJS)
	@rm -f $@
	$(Q)ar rcs $@ $^

$(TEST_LIB): $(TEST_LIB_SRCS:%.c=$(BUILD)/%.o)
	@rm -f $@
	$(Q)ar rcs $@ $^

build/deps/blst/bindings/blst.h:
	$(Q)tests/lib/get-blst.sh build/deps/blst

# Portable: one object that chooses at run time between CPUs with and without ADX.
$(BLST_LIB): | $(BLST)/bindings/blst.h
	@mkdir -p $(@D)
	@$(if $(Q),echo "  CC    blst")
	$(Q)$(CC) -O2 -fno-builtin -fPIC -D__BLST_PORTABLE__ -c $(BLST)/src/server.c -o $(@D)/server.o
	$(Q)$(CC) -O2 -fno-builtin -fPIC -D__BLST_PORTABLE__ -c $(BLST)/build/assembly.S -o $(@D)/assembly.o
	$(Q)ar rcs $@ $(@D)/server.o $(@D)/assembly.o

$(CXX_TESTS): LINKER = $(CXX)
LINKER = $(CC)
link = $(Q)$(LINKER) $(SANFLAGS) $(LDFLAGS) $(filter %.o,$^) $(filter %.a,$(filter-out $(BLST_LIB),$^)) -o $@
say = @$(if $(Q),echo "  LINK  $@")

$(BUILD)/proofd: $(BUILD)/daemon/main.o $(LIB) $(BLST_LIB)
	$(say)
	$(link) $(LIBS)

$(BUILD)/proofd-engine: $(BUILD)/daemon/engine.o $(LIB) $(BLST_LIB)
	$(say)
	$(link) $(LIBS)

$(BUILD)/proofctl: $(BUILD)/daemon/ctl.o $(LIB) $(BLST_LIB)
	$(say)
	$(link) $(LIBS)

# No exceptions of ours; headers of gRPC and protobuf are others'.
$(BUILD)/daemon/grpc/%.o $(GRPC_GEN)/%.o: OUR_CXXFLAGS += -fno-exceptions -isystem $(BUILD)
$(BUILD)/daemon/grpc/service.o: $(GRPC_GEN)/proofd.grpc.pb.cc

$(GRPC_GEN)/proofd.grpc.pb.cc $(GRPC_GEN)/proofd.pb.cc $(GRPC_GEN)/proofd.pb.h &: daemon/grpc/proofd.proto
	@mkdir -p $(GRPC_GEN)
	@$(if $(Q),echo "  PROTO $<")
	$(Q)protoc -Idaemon/grpc --cpp_out=$(GRPC_GEN) --grpc_out=$(GRPC_GEN) --plugin=protoc-gen-grpc=$(GRPC) $<

$(GRPC_GEN)/%.o: $(GRPC_GEN)/%.cc
	@$(if $(Q),echo "  CXX   $<")
	$(Q)$(CXX) -std=c++17 -O2 -fno-exceptions $(SANFLAGS) -isystem $(GRPC_GEN) -pthread $(CXXFLAGS) -w -c $< -o $@

$(BUILD)/proofd-grpc: LINKER = $(CXX)
$(BUILD)/proofd-grpc: $(GRPC_OBJS) $(LIB) $(BLST_LIB)
	$(say)
	$(link) $(GRPC_LIBS) $(LIBS)

$(BUILD)/tests/unit/%: $(BUILD)/tests/unit/%.o $(TEST_LIB) $(LIB) $(BLST_LIB)
	$(say)
	$(link) $(CHECK_LIBS) $(LIBS)

# Lets memory run out in the code that is tested.
$(BUILD)/tests/unit/test_upload: LDFLAGS += -Wl,--wrap=calloc
# Fill a node's memory.
$(BUILD)/tests/unit/test_arena: LDFLAGS += -Wl,--wrap=madvise,--wrap=syscall
$(BUILD)/tests/unit/test_ground: LDFLAGS += -Wl,--wrap=arena_create
$(BUILD)/tests/unit/test_pipeline: LDFLAGS += -Wl,--wrap=document_from_fd
# Have clocks of their own.
$(BUILD)/tests/unit/test_clock $(BUILD)/tests/unit/test_ctl $(BUILD)/tests/unit/test_writers: LDFLAGS += -Wl,--wrap=clock_gettime

$(BUILD)/tests/system/%: $(BUILD)/tests/system/%.o $(TEST_LIB) $(LIB) $(BLST_LIB)
	$(say)
	$(link) $(LIBS)

# Examples stand alone: without our libraries.
$(BUILD)/doc/examples/%: $(BUILD)/doc/examples/%.o
	$(say)
	$(link)

$(BUILD)/tests/bench/%: $(BUILD)/tests/bench/%.o $(TEST_LIB) $(LIB) $(BLST_LIB)
	$(say)
	$(link) $(LIBS)

# Test and bench programs that hold the kernels themselves, linked so that they run on machines without our libraries.
$(BUILD)/tests/gpu/%: $(BUILD)/tests/gpu/%.o $(CUDA_OBJS) $(TEST_LIB) $(LIB) $(BLST_LIB)
	$(say)
	$(Q)$(NVCC) $(NVCCFLAGS) $(filter %.o,$^) $(TEST_LIB) $(LIB) $(BLST_LIB) -o $@ $(GPU_TEST_LIBS)

GPU_TEST_LIBS = -Xlinker -Bstatic $(shell $(PKG_CONFIG) --libs-only-l check | sed 's/-lcheck_pic/-lcheck/') -lcrypto -lzstd -lz \
	-lnuma -Xlinker -Bdynamic -lm -lpthread -lrt -ldl

# C code that the object needs too, compiled once more as position-independent code; the object keeps it all to itself.
CUDA_PIC_OBJS := $(BUILD)/pic/numa/base.o $(BUILD)/pic/numa/workers.o $(BUILD)/pic/gpu/curve.o

$(BUILD)/pic/%.o: %.c | $(BLST)/bindings/blst.h
	@mkdir -p $(@D)
	@$(if $(Q),echo "  CC    $< (PIC)")
	$(Q)$(CC) $(OUR_CFLAGS) $(CFLAGS) -fPIC -fvisibility=hidden -c $< -o $@

$(BUILD)/libproofd-cuda.so: $(CUDA_OBJS) $(CUDA_PIC_OBJS) $(BLST_LIB)
	$(say)
	$(Q)$(NVCC) -shared $(NVCCFLAGS) $(filter %.o,$^) $(BLST_LIB) -o $@ -Xlinker --version-script=gpu/cuda/exports.map \
		-Xcompiler -static-libstdc++,-static-libgcc

# Fuzzers: clang with libFuzzer, everything instrumented, in a BUILD of its own (make fuzz).
$(BUILD)/tests/fuzz/%: $(BUILD)/tests/fuzz/%.o $(TEST_LIB) $(LIB) $(BLST_LIB)
	$(say)
	$(Q)$(CC) $(SANFLAGS) -fsanitize=fuzzer $(LDFLAGS) $(filter %.o,$^) $(TEST_LIB) $(LIB) -o $@ $(LIBS)

unit-tests: $(UNIT_TESTS)
system-helpers: $(SYSTEM_HELPERS)
benches: $(BENCHES)
fuzzers: $(FUZZERS)

# Each target for FUZZ_SECONDS; findings in build/fuzz/findings. They read what numa/ and gpu/ read.
FUZZ_SECONDS ?= 60
fuzz:
	@$(MAKE) --no-print-directory $(PARALLEL) CC=clang SAN=address,undefined BUILD=build/fuzz \
		CFLAGS="-fsanitize=fuzzer-no-link $(CFLAGS)" LIB_SRCS="$(filter numa/% gpu/%,$(LIB_SRCS))" fuzzers
	@tests/fuzz/run.sh build/fuzz $(FUZZ_SECONDS)

# Packages come first and pkg-config is asked afterwards, hence the second make.
demo:
	@tests/lib/packages.sh demo
	@$(MAKE) --no-print-directory $(PARALLEL) all
	@BUILD=$(BUILD) tests/demo.sh

# Builds with all CPUs unless told otherwise.
PARALLEL = $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))
check:
	@tests/lib/packages.sh check
	@$(MAKE) --no-print-directory $(PARALLEL) all unit-tests system-helpers
	@BUILD=$(BUILD) tests/run.sh unit system grpc

# On a machine with a GPU; elsewhere each test says so and is skipped.
gpu-tests: $(GPU_TESTS)
gpu-benches: $(GPU_BENCHES)

check-gpu: gpu-tests
	@BUILD=$(BUILD) tests/run.sh gpu

# The package in a Debian of two NUMA nodes, in a virtual machine: minutes where there is no KVM. VM_PROOF=cpu: with a proof by its CPUs.
check-vm:
	@tests/lib/packages.sh vm
	@$(MAKE) --no-print-directory $(PARALLEL) all system-helpers
	@$(MAKE) --no-print-directory $(PARALLEL) deb
	@BUILD=$(BUILD) tests/vm/run.sh

# compute-sanitizer over them at small sizes; and how busy sums and transforms keep the pipes that multiply.
sanitize-gpu: gpu-tests
	@BUILD=$(BUILD) tests/gpu/sanitize.sh

pipes-gpu: gpu-benches
	@BUILD=$(BUILD) tests/gpu/pipes.sh

bench-gpu: gpu-benches $(BUILD)/tests/gpu/test_sectors $(BUILD)/tests/gpu/test_sets
	@set -e; for b in $(GPU_BENCHES); do $$b; done
	@$(BUILD)/tests/gpu/test_sets 32GiB 64GiB
	@set -e; for gib in 22 14; do $(BUILD)/tests/gpu/test_sectors --memory $$gib 32GiB; done

# Engines killed a thousand times; make check does it thirty times. KILLS=N, SEED=N.
check-faults: all system-helpers
	@BUILD=$(BUILD) KILLS=$${KILLS:-1000} bash tests/system/test_faults.sh

# Everything at once, with kills of engines and front: an hour, or SOAK_SECONDS. SEED=N.
soak: all system-helpers
	@BUILD=$(BUILD) bash tests/system/soak.sh

check-unit: unit-tests
	@BUILD=$(BUILD) tests/run.sh unit

check-system: all system-helpers
	@BUILD=$(BUILD) tests/run.sh system

# Under sanitizers, but for gRPC itself, in minutes:
# make SAN=address,undefined BUILD=build/asan GRPC=/usr/bin/grpc_cpp_plugin PROOFD_QUICK=1 check-grpc
check-grpc: all system-helpers
	@BUILD=$(BUILD) tests/run.sh grpc

# Three services in network namespaces of their own and nodes that do as Curio's: root, twelve minutes. FLEET_JOBS=N.
check-fleet: all system-helpers
	@BUILD=$(BUILD) /usr/bin/python3 -B tests/grpc/fleet.py

# The mount with every tool of doc/filesystem.md, and what files do on it.
check-files:
	@tests/lib/packages.sh files
	@$(MAKE) --no-print-directory $(PARALLEL) all system-helpers
	@BUILD=$(BUILD) tests/run.sh files

# The same tests under sanitizers; PROOFD_QUICK leaves out, visibly, what would take these many minutes.
# make SAN=address,undefined BUILD=build/asan check-sanitized; make SAN=thread BUILD=build/tsan check-threads. The latter leaves out
# cases in which there is one thread (tests/lib/suite.h).
check-sanitized:
	@$(MAKE) --no-print-directory $(PARALLEL) all unit-tests system-helpers
	@PROOFD_QUICK=1 BUILD=$(BUILD) tests/run.sh unit system

THREADED := unit/test_arena unit/test_groth16 unit/test_partitions unit/test_users unit/test_compact unit/test_circuit unit/test_workers unit/test_slots unit/test_pipeline unit/test_ground unit/test_log unit/test_jobs unit/test_upload batch_add backend_cuda unit/test_msm unit/test_ntt unit/test_sched supervise unit/test_tree c1_reader unit/test_witness subgroup srs_file unit/test_qap unit/test_outflow \
	unit/test_intake unit/test_readers unit/test_device system/test_submit system/test_queue system/test_hostile system/test_mount system/test_user system/test_watch
THREADED_TESTS = $(foreach t,$(UNIT_TESTS),$(if $(strip $(foreach w,$(THREADED),$(findstring $(w),$(t)))),$(t)))
check-threads:
	@$(MAKE) --no-print-directory $(PARALLEL) all $(THREADED_TESTS) system-helpers
	@PROOFD_QUICK=1 CK_EXCLUDE_TAGS=one-thread BUILD=$(BUILD) ONLY="$(THREADED)" tests/run.sh unit system

# One line a measurement: median, spread, machine, beside a calibration (doc/measurements.md).
bench: all benches
	@for b in $(BENCHES); do echo "== $$b"; BUILD=$(BUILD) $$b || exit 1; done

# The compact witness of a 32 GiB partition; the last line is the figure. BENCH_THREADS: how many threads.
BENCH_THREADS ?= 2
bench-witness: $(BUILD)/tests/bench/bench_witness
	@$< $(BENCH_THREADS)

# Front, scheduler and journal with jobs that prove nothing; the last line is the figure.
bench-pipeline: $(BUILD)/proofd-engine $(BUILD)/tests/bench/bench_pipeline
	@BUILD=$(BUILD) $(BUILD)/tests/bench/bench_pipeline

# Rules of the pipeline, permits, what the log costs: a quarter of an hour. Fills its part of doc/measurements.md.
EXPERIMENTS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/bench/experiment_*.c))
experiments: all $(EXPERIMENTS)
	@BUILD=$(BUILD) bash tests/bench/experiments.sh

# Each file by itself, with the flags it is built with: make -j2 lint, and only what has changed.
LINT := $(patsubst %.c,$(BUILD)/lint/%.o,$(LIB_SRCS) $(PROGRAM_SRCS) $(wildcard daemon/grpc/*.c))
LINT += $(if $(GRPC),$(patsubst %.cc,$(BUILD)/lint/%.o,$(wildcard daemon/grpc/*.cc)))
TIDY_CHECKS := -*,clang-analyzer-*,bugprone-*,performance-*,-bugprone-easily-swappable-parameters,-bugprone-narrowing-conversions,-bugprone-implicit-widening-of-multiplication-result,-clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling

lint: $(LINT)

$(BUILD)/lint/%.o: %.c | $(BLST)/bindings/blst.h
	@mkdir -p $(@D)
	@$(if $(Q),echo "  LINT  $<")
	$(Q)$(CC) $(OUR_CFLAGS) -Werror -fanalyzer -Wno-analyzer-malloc-leak -c $< -o $@
	$(Q)cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
		-I. --suppress=missingIncludeSystem $<
	$(Q)clang-tidy --quiet --warnings-as-errors='*' --checks='$(TIDY_CHECKS)' $< -- $(filter-out -M%,$(OUR_CFLAGS))

$(BUILD)/lint/%.o: %.cc $(GRPC_GEN)/proofd.grpc.pb.cc | $(BLST)/bindings/blst.h
	@mkdir -p $(@D)
	@$(if $(Q),echo "  LINT  $<")
	$(Q)$(CXX) $(OUR_CXXFLAGS) -fno-exceptions -isystem $(BUILD) -Werror -c $< -o $@
	$(Q)clang-tidy --quiet --warnings-as-errors='*' --checks='$(TIDY_CHECKS)' $< -- $(filter-out -M%,$(OUR_CXXFLAGS)) -isystem $(BUILD)

# The engine goes beside proofd, which looks for it there.
INSTALL ?= install
SYSTEMDDIR ?= $(PREFIX)/lib/systemd/system
UDEVDIR ?= $(PREFIX)/lib/udev/rules.d
install: all $(if $(GRPC_PROGRAM),install-grpc)
	$(Q)$(INSTALL) -d $(addprefix $(DESTDIR)$(PREFIX)/,bin sbin share/man/man1 share/man/man4 share/man/man5 share/man/man7 share/man/man8 include/proofd \
		share/bash-completion/completions share/proofd lib/sysusers.d lib/tmpfiles.d) $(addprefix $(DESTDIR),$(SYSTEMDDIR) $(UDEVDIR))
	$(Q)$(INSTALL) -m 755 $(BUILD)/proofctl $(DESTDIR)$(PREFIX)/bin/
	$(Q)$(INSTALL) -m 755 $(BUILD)/proofd $(BUILD)/proofd-engine $(DESTDIR)$(PREFIX)/sbin/
	$(Q)$(if $(wildcard $(CUDA_LIB)),$(INSTALL) -d $(DESTDIR)$(PREFIX)/lib/proofd && \
		$(INSTALL) -m 755 $(CUDA_LIB) $(DESTDIR)$(PREFIX)/lib/proofd/)
	$(Q)$(INSTALL) -m 644 doc/man/proofctl.1 $(DESTDIR)$(PREFIX)/share/man/man1/
	$(Q)$(INSTALL) -m 644 fuse/abi.h $(DESTDIR)$(PREFIX)/include/proofd/
	$(Q)$(INSTALL) -m 644 doc/man/proof.4 $(DESTDIR)$(PREFIX)/share/man/man4/
	$(Q)$(INSTALL) -m 644 doc/man/proofd.conf.5 $(DESTDIR)$(PREFIX)/share/man/man5/
	$(Q)$(INSTALL) -m 644 doc/man/proof.7 $(DESTDIR)$(PREFIX)/share/man/man7/
	$(Q)$(INSTALL) -m 644 doc/man/proofd.8 doc/man/proofd-engine.8 $(DESTDIR)$(PREFIX)/share/man/man8/
	$(Q)sed 's|/usr/sbin/|$(PREFIX)/sbin/|' daemon/systemd/proofd.service >$(DESTDIR)$(SYSTEMDDIR)/proofd.service
	$(Q)chmod 644 $(DESTDIR)$(SYSTEMDDIR)/proofd.service
	$(Q)$(INSTALL) -m 644 daemon/systemd/proofd.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/proofd.conf
	$(Q)$(INSTALL) -m 644 daemon/systemd/proofd.tmpfiles $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/proofd.conf
	$(Q)$(INSTALL) -m 644 udev/60-proof.rules $(DESTDIR)$(UDEVDIR)/
	$(Q)$(INSTALL) -m 644 daemon/monitoring/prometheus-rules.yml daemon/monitoring/grafana-dashboard.json $(DESTDIR)$(PREFIX)/share/proofd/
	$(Q)$(INSTALL) -m 644 daemon/completion/proofctl $(DESTDIR)$(PREFIX)/share/bash-completion/completions/
	$(Q)ln -sf proofctl $(DESTDIR)$(PREFIX)/share/bash-completion/completions/proofd

# Of what speaks gRPC, which is a Debian package of its own.
install-grpc: $(GRPC_PROGRAM)
	$(Q)$(INSTALL) -d $(addprefix $(DESTDIR)$(PREFIX)/,sbin share/man/man8 lib/sysusers.d) $(DESTDIR)$(SYSTEMDDIR)
	$(Q)$(INSTALL) -m 755 $(BUILD)/proofd-grpc $(DESTDIR)$(PREFIX)/sbin/
	$(Q)$(INSTALL) -m 644 doc/man/proofd-grpc.8 $(DESTDIR)$(PREFIX)/share/man/man8/
	$(Q)sed 's|/usr/sbin/|$(PREFIX)/sbin/|' daemon/systemd/proofd-grpc.service >$(DESTDIR)$(SYSTEMDDIR)/proofd-grpc.service
	$(Q)chmod 644 $(DESTDIR)$(SYSTEMDDIR)/proofd-grpc.service
	$(Q)$(INSTALL) -m 644 daemon/systemd/proofd-grpc.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/proofd-grpc.conf

# Debian packages, in $(BUILD)/deb; check-deb looks at it, installs it in a directory of its own and removes it again.
deb:
	@tests/lib/packages.sh deb
	@BUILD=$(BUILD) daemon/packaging/build.sh

check-deb: deb
	@BUILD=$(BUILD) tests/deb.sh

format:
	clang-format -i $(wildcard numa/*.[ch] numa/circuit/*.[ch] gpu/*.[ch] gpu/cpu/*.[ch] daemon/*.[ch] \
		daemon/grpc/*.[ch] daemon/grpc/*.cc fuse/*.[ch] tests/*/*.[ch])

clean:
	rm -rf $(BUILD)

# Of this build alone: another one in a directory below may be at work.
-include $(shell find $(addprefix $(BUILD)/,numa gpu daemon fuse tests doc pic lint) -name '*.d' -type f 2>/dev/null)
