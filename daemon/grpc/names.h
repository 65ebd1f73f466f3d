/*
 * Request ids as names of jobs. Both ways, without a table: who restarts finds a job by its id again.
 *
 * An id "porep-1000-17" is the job "grpc-porep-1000-17". Bytes that are no letter, digit, - or _ are %XX, so no name is temporary or
 * reserved, and no two ids share one. An id that would be too long is "grpc-%h" and its SHA-256.
 *
 * Any thread.
 */
#ifndef GRPC_NAMES_H
#define GRPC_NAMES_H

#include <string>

#define REQUEST_ID_MAX 1024 /* bytes */

std::string job_name_of(const std::string &request_id);
/* False for a job that is none of ours, or whose id its name does not tell. */
bool request_id_of(const std::string &job_name, std::string *out);
/* For a request without an id: random. */
std::string request_id_new();

#endif
