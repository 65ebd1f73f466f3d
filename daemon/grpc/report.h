/*
 * What NAME.report says, as far as an answer has it. The service writes one member a line; nothing else is read.
 *
 * Any thread.
 */
#ifndef GRPC_REPORT_H
#define GRPC_REPORT_H

#include <cstdint>
#include <string>

struct Report {
    std::string content_sha256;
    double waited_ms = 0, ran_ms = 0;
    /* Of the partition that took longest. */
    double params_ms = 0, synthesis_ms = 0, prove_ms = 0;
};

Report report_read(const std::string &json);

#endif
