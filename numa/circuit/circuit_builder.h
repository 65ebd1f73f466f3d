/*
 * A circuit in the making: templates are recorded from gadgets, then placed one after another.
 *
 * A template is recorded by running gadgets on the cs that builder_record gives, over variables of others that
 * builder_foreign_num and its like make up. builder_place then says where it stands. What cannot be had without memory is
 * remembered, and told by builder_finish.
 *
 * A builder belongs to one thread.
 */
#ifndef CIRCUIT_CIRCUIT_BUILDER_H
#define CIRCUIT_CIRCUIT_BUILDER_H

#include "numa/circuit/circuit.h"
#include "numa/circuit/label.h"
#include "numa/circuit/num.h"
#include "numa/circuit/sha256.h"

struct builder;

/* Returns 0 with *out set (end it with builder_destroy), or -ENOMEM. */
int builder_create(const struct sector_size *size, struct builder **out);
void builder_destroy(struct builder *b);

/* Begins a template. The rows that gadgets give to the returned cs are its rows, the variables that they allocate its own. */
struct cs *builder_record(struct builder *b);

/* Variables of others, in segment `segment`, from CIRCUIT_FOREIGN on, at place `place`. Values are 0. A segment has bits or
 * values, never both. */
struct num builder_foreign_num(struct builder *b, uint32_t segment, uint32_t place);
struct boolean builder_foreign_bit(struct builder *b, uint32_t segment, uint32_t place);
/* The bytes of a field element whose 255 bits are the segment's first. */
void builder_foreign_bytes(struct builder *b, uint32_t segment, struct boolean bits[NUM_BYTE_BITS]);

/* How a template would name a variable of the one being recorded: see builder_at. */
uint32_t builder_own(const struct builder *b, cs_var var);

/* Ends the template: its index. */
uint32_t builder_end(struct builder *b);

/* Puts a template behind what stands. foreign[i] is where its segment CIRCUIT_FOREIGN + i begins. Returns where its own
 * variables begin. */
struct circuit_base builder_place(struct builder *b, uint32_t template_index,
                                  const struct circuit_base *foreign);

/* Where the next template's variables will begin. */
struct circuit_base builder_here(const struct builder *b);

/* Where the variable `own` of builder_own is, in the instance whose own variables begin at `base`: `place` variables, or values,
 * further on. */
struct circuit_base builder_at(struct circuit_base base, uint32_t own, uint32_t place);

/* Puts the closing rows, works out what follows from the templates, and hands over the circuit. Returns 0 with *out set,
 * or -ENOMEM. */
int builder_finish(struct builder *b, const struct circuit_offsets *offsets, struct circuit **out);

#endif
