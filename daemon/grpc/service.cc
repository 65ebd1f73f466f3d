/*
 * SubmitProof and Prove are unary for their callers, but are served as streams: gRPC then hands over the call before it has read the
 * message, which is left in the caller's hands until one of the uploads' places is free.
 */
#include "daemon/grpc/service.h"

#include <atomic>
#include <cstring>
#include <thread>

#include "daemon/grpc/log_line.h"
#include "daemon/grpc/names.h"
#include "daemon/grpc/state.h"
#include "daemon/grpc/uploads.h"
#include "daemon/grpc/utf8.h"
#include "generated/proofd.grpc.pb.h"

using grpc::ServerContext;
using grpc::ServerUnaryStreamer;
using grpc::Status;
using grpc::StatusCode;
using std::chrono::milliseconds;
using std::chrono::system_clock;

static const size_t metrics_max = 4 << 20;
/* Before a caller's deadline, since the answer has to reach him: a quarter of what is left, between these. */
static const milliseconds margin_min(500), margin_max(5000);
static const milliseconds look(100);
static const char porep[] = "porep-seal-commit";

/* Indexes of methods in the order of proofd.proto. */
enum { METHOD_SUBMIT = 0, METHOD_PROVE = 2 };

/* ---- the caller ---- */

static milliseconds margin_of(system_clock::time_point deadline)
{
    return std::clamp(
        std::chrono::duration_cast<milliseconds>((deadline - system_clock::now()) / 4), margin_min,
        margin_max);
}

static Patience patience_of(const ServerContext *context, bool with_margin)
{
    system_clock::time_point deadline = context->deadline();

    if (with_margin && deadline != system_clock::time_point::max())
        deadline -= margin_of(deadline);
    return {deadline, [context] { return context->IsCancelled(); }};
}

static void log_call(const char *method, const std::string &id, const Status &status,
                     system_clock::time_point since)
{
    std::string ms = std::to_string(
        std::chrono::duration_cast<milliseconds>(system_clock::now() - since).count());
    std::string code = std::to_string(status.error_code());

    if (status.ok())
        log_line(LINE_INFO, {{"method", method}, {"request", id.c_str()}, {"ms", ms.c_str()}});
    else
        log_line(LINE_WARN, {{"method", method},
                             {"request", id.c_str()},
                             {"ms", ms.c_str()},
                             {"code", code.c_str()},
                             {"error", status.error_message().c_str()}});
}

/* ---- kinds ---- */

static Status check_kind(const Submission &s)
{
    static const char *const later[] = {"SNAP_DEALS_UPDATE", "WINDOW_POST_PARTITION",
                                        "WINNING_POST"};

    if (s.proof_kind >= 2 && s.proof_kind <= 4)
        return Status(StatusCode::UNIMPLEMENTED, std::string(later[s.proof_kind - 2]) +
                                                     " is not there yet: POREP_SEAL_COMMIT is");
    if (s.proof_kind != 1)
        return Status(StatusCode::INVALID_ARGUMENT,
                      "proof_kind is " + std::to_string(s.proof_kind) + ": POREP_SEAL_COMMIT is 1");
    if (!s.has_document)
        return Status(StatusCode::INVALID_ARGUMENT, "vanilla_proof is empty");
    return Status::OK;
}

static Status check_id(const std::string &id)
{
    if (!id.empty() && id.size() <= REQUEST_ID_MAX)
        return Status::OK;
    return Status(StatusCode::INVALID_ARGUMENT,
                  id.empty() ? "job_id is empty" : "job_id is too long");
}

/* Of PreloadSRS and EvictSRS. */
static Status check_circuit(const std::string &id)
{
    for (const char *kind : {"wpost-", "winning-", "snap-"}) {
        if (id.rfind(kind, 0) == 0)
            return Status(StatusCode::UNIMPLEMENTED,
                          id + " is not there yet: porep-32g and its like are");
    }
    if (circuit_is_known(id))
        return Status::OK;
    return Status(StatusCode::INVALID_ARGUMENT,
                  "'" + id.substr(0, 64) +
                      "' is none of porep-2k, porep-8m, porep-512m, porep-32g, porep-64g");
}

static Status unavailable(const Mount &mount, int error)
{
    return Status(StatusCode::UNAVAILABLE,
                  mount.path() + ": " + strerror(-error) + ": is proofd running there?");
}

/* ---- answers ---- */

static void fill(const std::string &id, const Outcome &o, cuzk::v1::AwaitProofResponse *out)
{
    static const cuzk::v1::AwaitProofResponse::Status ends[] = {
        cuzk::v1::AwaitProofResponse::COMPLETED, cuzk::v1::AwaitProofResponse::FAILED,
        cuzk::v1::AwaitProofResponse::CANCELLED, cuzk::v1::AwaitProofResponse::TIMEOUT};

    out->set_job_id(id);
    out->set_status(ends[o.end]);
    out->set_proof(o.proof);
    out->set_error_message(made_utf8(o.error));
    out->set_queue_wait_ms(o.queue_wait_ms);
    out->set_srs_load_ms(o.srs_load_ms);
    out->set_synthesis_ms(o.synthesis_ms);
    out->set_gpu_compute_ms(o.gpu_compute_ms);
    out->set_total_ms(o.total_ms);
}

/* Anybody may give a job any name. */
static std::string id_of_job(const std::string &job)
{
    std::string id;

    return request_id_of(job, &id) && is_utf8(id) ? id : made_utf8(job);
}

static void fill(const ServiceState &state, cuzk::v1::GetStatusResponse *out)
{
    for (const GpuState &g : state.gpus) {
        cuzk::v1::GPUStatus *gpu = out->add_gpus();
        gpu->set_ordinal(g.ordinal);
        gpu->set_name(made_utf8(g.name));
        gpu->set_vram_total_bytes(g.memory_bytes);
        gpu->set_vram_free_bytes(g.memory_free_bytes);
        gpu->set_current_job_id(id_of_job(g.job));
        gpu->set_current_proof_kind(g.job.empty() ? "" : porep);
    }
    for (const ParamsState &p : state.params) {
        cuzk::v1::SRSStatus *srs = out->add_loaded_srs();
        srs->set_circuit_id(p.circuit_id);
        srs->set_tier(p.on_gpu      ? cuzk::v1::SRSStatus::HOT
                      : p.in_memory ? cuzk::v1::SRSStatus::WARM
                                    : cuzk::v1::SRSStatus::COLD);
        srs->set_size_bytes(p.bytes);
        srs->set_ref_count(p.holders);
    }
    cuzk::v1::QueueStatus *queue = out->add_queues();
    queue->set_proof_kind(porep);
    queue->set_pending(state.pending);
    queue->set_in_progress(state.in_progress);
    out->set_total_proofs_completed(state.done);
    out->set_total_proofs_failed(state.failed);
    out->set_uptime_seconds(state.uptime_s);
    out->set_pinned_memory_bytes(state.memory_bytes);
    out->set_pinned_memory_limit_bytes(state.memory_limit_bytes);
}

/* ---- the methods ---- */

class Engine final : public cuzk::v1::ProvingEngine::Service
{
  public:
    Engine(const Mount &mount, Jobs *jobs, Uploads *uploads)
        : mount_(mount), jobs_(jobs), uploads_(uploads)
    {
        MarkMethodStreamed(METHOD_SUBMIT,
                           new grpc::internal::StreamedUnaryHandler<grpc::ByteBuffer,
                                                                    cuzk::v1::SubmitProofResponse>(
                               [this](ServerContext *c, SubmitStream *s) { return submit(c, s); }));
        MarkMethodStreamed(
            METHOD_PROVE,
            new grpc::internal::StreamedUnaryHandler<grpc::ByteBuffer, cuzk::v1::ProveResponse>(
                [this](ServerContext *c, ProveStream *s) { return prove(c, s); }));
    }

  private:
    using SubmitStream = ServerUnaryStreamer<grpc::ByteBuffer, cuzk::v1::SubmitProofResponse>;
    using ProveStream = ServerUnaryStreamer<grpc::ByteBuffer, cuzk::v1::ProveResponse>;

    /* When it returns, the document is in the mount and no more in memory. */
    template <class Stream>
    Status receive(ServerContext *context, Stream *stream, bool wrapped, std::string *id,
                   uint64_t *file)
    {
        Patience patience = patience_of(context, true);
        Uploads::Place place(uploads_, context);
        grpc::ByteBuffer buffer;
        Message message;
        std::string why;

        if (!place.take(patience))
            return Status(StatusCode::RESOURCE_EXHAUSTED,
                          "as many documents as may be are being received");
        bool read = stream->Read(&buffer);
        if (!place.arrived())
            return Status(StatusCode::CANCELLED, "no message came within " +
                                                     std::to_string(uploads_->limit().count()) +
                                                     " s, and others wait");
        if (!read)
            return Status(StatusCode::INVALID_ARGUMENT, "no message came, or one that is too long");
        if (!message.read(buffer, wrapped, &why))
            return Status(StatusCode::INVALID_ARGUMENT, why);
        buffer.Clear(); /* the message has its pieces */
        *id = message.submission().request_id;
        Status status = check_kind(message.submission());
        if (!status.ok())
            return status;
        if (id->empty())
            *id = request_id_new();
        return jobs_->submit(*id, message, patience, file);
    }

    Status submit(ServerContext *context, SubmitStream *stream)
    {
        system_clock::time_point since = system_clock::now();
        cuzk::v1::SubmitProofResponse response;
        ServiceState state;
        std::string id;
        uint64_t file;
        Status status = receive(context, stream, false, &id, &file);

        log_call("SubmitProof", id, status, since);
        if (!status.ok())
            return status;
        response.set_job_id(id);
        if (state_read(mount_, &state) == 0) {
            response.set_queue_position(state.pending);
            for (const GpuState &g : state.gpus) {
                if (id_of_job(g.job) == id)
                    response.set_assigned_gpu(std::to_string(g.ordinal));
            }
        }
        stream->Write(response);
        return Status::OK;
    }

    Status prove(ServerContext *context, ProveStream *stream)
    {
        system_clock::time_point since = system_clock::now();
        cuzk::v1::ProveResponse response;
        Outcome outcome;
        std::string id;
        uint64_t file = 0;
        Status status = receive(context, stream, true, &id, &file);

        if (status.ok())
            status = wait(patience_of(context, false), id, file, &outcome);
        if (status.ok() && outcome.end == Outcome::TIMEOUT)
            status = Status(StatusCode::DEADLINE_EXCEEDED,
                            "the job goes on: ask again with the same request_id");
        log_call("Prove", id, status, since);
        if (!status.ok())
            return status;
        fill(id, outcome, response.mutable_result());
        stream->Write(response);
        return Status::OK;
    }

    Status wait(const Patience &patience, const std::string &id, uint64_t file, Outcome *outcome)
    {
        waiting_++;
        Status status = jobs_->await(id, file, patience, outcome);
        waiting_--;
        return status;
    }

    Status AwaitProof(ServerContext *context, const cuzk::v1::AwaitProofRequest *request,
                      cuzk::v1::AwaitProofResponse *response) override
    {
        Patience patience = patience_of(context, true);
        Outcome outcome;
        Status status = check_id(request->job_id());

        /* Longer than a year is for ever. */
        if (request->timeout_ms() && request->timeout_ms() < 365ull * 86400 * 1000)
            patience.until =
                std::min(patience.until, system_clock::now() + milliseconds(request->timeout_ms()));
        if (status.ok())
            status = wait(patience, request->job_id(), 0, &outcome);
        if (status.ok())
            fill(request->job_id(), outcome, response);
        return status;
    }

    Status CancelProof(ServerContext *, const cuzk::v1::CancelProofRequest *request,
                       cuzk::v1::CancelProofResponse *response) override
    {
        bool was_running = false;
        Status status = check_id(request->job_id());

        if (status.ok())
            status = jobs_->cancel(request->job_id(), &was_running);
        response->set_was_running(was_running);
        log_call("CancelProof", request->job_id(), status, system_clock::now());
        return status;
    }

    Status GetStatus(ServerContext *, const cuzk::v1::GetStatusRequest *,
                     cuzk::v1::GetStatusResponse *response) override
    {
        ServiceState state;
        int ret = state_read(mount_, &state);

        if (ret < 0)
            return unavailable(mount_, ret);
        fill(state, response);
        return Status::OK;
    }

    Status GetMetrics(ServerContext *, const cuzk::v1::GetMetricsRequest *,
                      cuzk::v1::GetMetricsResponse *response) override
    {
        std::string text;
        int ret = mount_.read("metrics", metrics_max, &text);

        if (ret < 0)
            return unavailable(mount_, ret);
        text += "# HELP proofd_grpc_uploads Documents that are being received.\n# TYPE "
                "proofd_grpc_uploads gauge\n"
                "proofd_grpc_uploads " +
                std::to_string(uploads_->taken()) +
                "\n# HELP proofd_grpc_waiting Calls that wait for a proof.\n# TYPE "
                "proofd_grpc_waiting gauge\n"
                "proofd_grpc_waiting " +
                std::to_string(waiting_.load()) + "\n";
        response->set_prometheus_text(made_utf8(text));
        return Status::OK;
    }

    Status PreloadSRS(ServerContext *context, const cuzk::v1::PreloadSRSRequest *request,
                      cuzk::v1::PreloadSRSResponse *response) override
    {
        const system_clock::time_point begin = system_clock::now();
        ParamsPlaces before, after;
        Status status = find_params(request->circuit_id(), &before);

        if (!status.ok())
            return status;
        if (before.holders == before.nodes && !before.pending) {
            response->set_already_loaded(true);
            return Status::OK;
        }
        status = have_done(context, request->circuit_id(), "load", &after);
        if (!status.ok())
            return status;
        response->set_load_time_ms(static_cast<uint64_t>(
            std::chrono::duration_cast<milliseconds>(system_clock::now() - begin).count()));
        return Status::OK;
    }

    Status EvictSRS(ServerContext *context, const cuzk::v1::EvictSRSRequest *request,
                    cuzk::v1::EvictSRSResponse *response) override
    {
        ParamsPlaces before, after;
        Status status = check_circuit(request->circuit_id());

        if (!status.ok())
            return status;
        status = find_params(request->circuit_id(), &before);
        if (status.error_code() == StatusCode::NOT_FOUND)
            return Status::OK; /* there is nothing to give up */
        if (status.ok())
            status = have_done(context, request->circuit_id(), "evict", &after);
        if (!status.ok())
            return status;
        response->set_was_loaded(before.holders > after.holders);
        response->set_freed_bytes(before.bytes > after.bytes ? before.bytes - after.bytes : 0);
        return Status::OK;
    }

    Status find_params(const std::string &circuit_id, ParamsPlaces *out)
    {
        Status status = check_circuit(circuit_id);

        if (!status.ok())
            return status;
        int ret = params_read(mount_, circuit_id, out);
        if (ret == -ENOENT)
            return Status(StatusCode::NOT_FOUND, "there are no parameters for " + circuit_id);
        return ret < 0 ? unavailable(mount_, ret) : Status::OK;
    }

    Status refusal(const std::string &circuit_id, int error) const
    {
        const std::string path = mount_.path() + "/params of " + circuit_id + ": ";

        switch (error) {
        case -EACCES:
            return Status(StatusCode::PERMISSION_DENIED,
                          path + "only proofd's user and its critical_group may ask for that");
        case -EBUSY:
            return Status(StatusCode::FAILED_PRECONDITION, path + "partitions in flight need them");
        case -ENOENT:
        case -EBADMSG:
            return Status(StatusCode::NOT_FOUND, path + "no file that can be loaded");
        default:
            return unavailable(mount_, error);
        }
    }

    /* Asks all engines and waits until each has done it, or cannot. */
    Status have_done(ServerContext *context, const std::string &circuit_id, const char *what,
                     ParamsPlaces *after)
    {
        int ret = params_ask(mount_, circuit_id, what);

        if (ret < 0)
            return refusal(circuit_id, ret);
        for (;;) {
            Status status = find_params(circuit_id, after);
            if (!status.ok())
                return status;
            if (!after->failure.empty())
                return Status(StatusCode::FAILED_PRECONDITION, made_utf8(after->failure));
            if (!after->pending)
                return Status::OK;
            if (context->IsCancelled())
                return Status(StatusCode::CANCELLED, "engines go on with it");
            std::this_thread::sleep_for(look);
        }
    }

    const Mount &mount_;
    Jobs *jobs_;
    Uploads *uploads_;
    std::atomic<uint64_t> waiting_{0};
};

std::unique_ptr<grpc::Service> service_create(const Mount &mount, Jobs *jobs, Uploads *uploads)
{
    return std::make_unique<Engine>(mount, jobs, uploads);
}
