/*
 * The service cuzk.v1.ProvingEngine: eight methods over jobs and state of a mount.
 *
 * Made and ended by main(); its methods are called by gRPC's threads.
 */
#ifndef GRPC_SERVICE_H
#define GRPC_SERVICE_H

#include <grpcpp/impl/service_type.h>
#include <memory>

#include "daemon/grpc/jobs.h"
#include "daemon/grpc/mount.h"
#include "daemon/grpc/uploads.h"

/* All is borrowed. */
std::unique_ptr<grpc::Service> service_create(const Mount &mount, Jobs *jobs, Uploads *uploads);

#endif
