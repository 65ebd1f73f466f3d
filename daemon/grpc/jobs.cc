#include "daemon/grpc/jobs.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <sys/random.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "daemon/grpc/log_line.h"
#include "daemon/grpc/names.h"
#include "daemon/grpc/report.h"

using grpc::Status;
using grpc::StatusCode;

static const char temporary_prefix[] = ".grpc-upload-";
static const size_t proof_max = 1 << 20, report_max = 1 << 20, error_max = 64 << 10;
static const size_t piece_max = 1 << 20; /* of a write: the largest of the mount */
static const int step_ms = 100; /* how often a wait looks whether its caller is still there */
static const int look_again_ms = 5000;      /* should an event have been lost */
static const int proof_is_taken_ms = 10000; /* a proof that has not come so long after "done" */

static int64_t now_ms()
{
    using namespace std::chrono;
    return duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
}

static void pause_a_step()
{
    std::this_thread::sleep_for(std::chrono::milliseconds(step_ms));
}

/* What an errno of the mount means to a caller; `why` is the text of NAME.error, where there is one. */
static Status status_of(int error, const std::string &why)
{
    std::string text = why.empty() ? strerror(-error) : why;

    switch (error) {
    case -EBADMSG:
    case -EFBIG:
        return Status(StatusCode::INVALID_ARGUMENT, text);
    case -EINVAL: /* well formed, and nothing that this version proves */
        return Status(StatusCode::UNIMPLEMENTED, text);
    case -EOPNOTSUPP:
        return Status(StatusCode::FAILED_PRECONDITION, text);
    case -ENOSPC:
    case -EDQUOT:
    case -EAGAIN:
    case -ENOMEM:
        return Status(StatusCode::RESOURCE_EXHAUSTED, text);
    case -EACCES:
    case -EPERM:
        return Status(StatusCode::PERMISSION_DENIED, text);
    default:
        return Status(is_gone(error) ? StatusCode::UNAVAILABLE : StatusCode::INTERNAL, text);
    }
}

static Status impatient(const Patience &patience, const char *what,
                        StatusCode code = StatusCode::RESOURCE_EXHAUSTED)
{
    if (patience.gone())
        return Status(StatusCode::CANCELLED, "the caller is gone");
    return Status(code, what);
}

static std::string first_line(const std::string &text)
{
    return text.substr(0, text.find('\n'));
}

/* ---- turns ---- */

class Jobs::Turn
{
  public:
    Turn(Jobs *jobs, const std::string &name) : jobs_(jobs), name_(name) {}
    /* False when patience ends first. */
    bool take(const Patience &patience)
    {
        std::unique_lock<std::mutex> guard(jobs_->lock_);
        while (!(mine_ = jobs_->submitting_.insert(name_).second)) {
            if (patience.over())
                return false;
            jobs_->freed_.wait_for(guard, std::chrono::milliseconds(step_ms));
        }
        return true;
    }
    ~Turn()
    {
        if (!mine_)
            return;
        std::lock_guard<std::mutex> guard(jobs_->lock_);
        jobs_->submitting_.erase(name_);
        jobs_->freed_.notify_all();
    }

  private:
    Jobs *jobs_;
    std::string name_;
    bool mine_ = false;
};

/* ---- submit ---- */

struct FactsDeleter {
    void operator()(facts_reader *r) const
    {
        facts_destroy(r);
    }
};
using FactsReader = std::unique_ptr<facts_reader, FactsDeleter>;

static FactsReader make_reader()
{
    facts_reader *r = nullptr;

    return FactsReader(facts_create(&r) == 0 ? r : nullptr);
}

static int write_full(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, bytes, len);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0) {
            bytes += n;
            len -= static_cast<size_t>(n);
        }
    }
    return 0;
}

/* Pieces off the wire are small; the mount is written in large ones. */
class Writer
{
  public:
    explicit Writer(int fd) : fd_(fd)
    {
        buffer_.reserve(piece_max);
    }
    int put(const void *bytes, size_t len)
    {
        const char *at = static_cast<const char *>(bytes);
        int ret = 0;

        while (ret == 0 && len > 0) {
            size_t n = std::min(len, piece_max - buffer_.size());
            buffer_.append(at, n);
            at += n;
            len -= n;
            if (buffer_.size() == piece_max)
                ret = flush();
        }
        return ret;
    }
    int flush()
    {
        int ret = write_full(fd_, buffer_.data(), buffer_.size());

        buffer_.clear();
        return ret;
    }

  private:
    int fd_;
    std::string buffer_;
};

/* The document's facts, and nothing else. */
static int read_facts(const Message &message, facts *out, errmsg *err)
{
    FactsReader reader = make_reader();
    int ret = reader ? 0 : -ENOMEM;

    for (const Message::Piece &piece : message.document()) {
        if (ret == 0)
            ret = facts_feed(reader.get(), piece.bytes, piece.len, err);
    }
    return ret == 0 ? facts_finish(reader.get(), out, err) : ret;
}

static int check_request(const Submission &s, const facts &facts, Status *status)
{
    errmsg err = {""};

    if (s.sector_size && !facts.test && s.sector_size != facts.sector_bytes) {
        *status = Status(StatusCode::INVALID_ARGUMENT,
                         "sector_size is " + std::to_string(s.sector_size) +
                             ", that of the document " + std::to_string(facts.sector_bytes));
        return -EINVAL;
    }
    int ret = facts_check_sector(&facts, s.miner_id, s.sector_number, &err);
    if (ret < 0)
        *status = Status(StatusCode::INVALID_ARGUMENT, err.text);
    return ret;
}

/* The mount would take a temporary name in any case: its places are the queue's. */
int Jobs::wait_for_place(const Attempt &a, Status *status)
{
    uint64_t left = 0;
    int ret;

    while ((ret = mount_.places_left(&left)) == 0 && left == 0) {
        if (a.patience->over()) {
            *status = impatient(*a.patience, "the queue is full");
            return -EAGAIN;
        }
        pause_a_step();
    }
    return ret;
}

/* The bytes of the document from `at` on, as text. */
static std::string part_of(const std::vector<Message::Piece> &pieces, uint64_t at, size_t len)
{
    std::string out;

    for (const Message::Piece &piece : pieces) {
        if (at < piece.len && out.size() < len)
            out.append(static_cast<const char *>(piece.bytes) + at,
                       std::min<size_t>(len - out.size(), piece.len - at));
        at -= std::min<uint64_t>(at, piece.len);
    }
    return out;
}

/* Curio's own wrapping begins with the sector's number: with the miner put before it, the service checks replica_id as it reads, and
 * nobody has to read the document twice. What goes in place of its first byte, or nothing where it is of another form. */
static std::string head_with_miner(const Message &message)
{
    const Submission &s = message.submission();
    const std::vector<Message::Piece> pieces = message.document();
    const std::string begin =
        "{\"SectorNum\":" + std::to_string(s.sector_number) + ",\"Phase1Out\":\"";
    const std::string end = ",\"SectorSize\":" + std::to_string(s.sector_size) + "}";
    uint64_t len = 0;

    for (const Message::Piece &piece : pieces)
        len += piece.len;
    if (len < begin.size() + end.size() || part_of(pieces, 0, begin.size()) != begin ||
        (s.sector_size && part_of(pieces, len - end.size(), end.size()) != end))
        return "";
    return "{\"Miner\":\"f0" + std::to_string(s.miner_id) + "\",";
}

static int write_pieces(int fd, const Message &message, const std::string &head)
{
    Writer writer(fd);
    size_t skip = head.empty() ? 0 : 1;
    int ret = writer.put(head.data(), head.size());

    for (const Message::Piece &piece : message.document()) {
        if (ret == 0)
            ret = writer.put(static_cast<const char *>(piece.bytes) + skip, piece.len - skip);
        skip = 0;
    }
    return ret == 0 ? writer.flush() : ret;
}

/* Its pid tells whether who made it is still there; the rest nobody can guess, who would make the file first. */
static std::string temporary_name()
{
    unsigned char random[8];
    char hex[2 * sizeof(random) + 1];

    /* Never fails for so few bytes, once the kernel has its entropy, which it waits for. */
    while (getrandom(random, sizeof(random), 0) != sizeof(random))
        ;
    hex_encode(hex, random, sizeof(random));
    return temporary_prefix + std::to_string(getpid()) + "-" + hex;
}

/* Its descriptor, or a negative errno. */
int Jobs::create_temporary(const Attempt &a, std::string *temporary, Status *status)
{
    for (;;) {
        *temporary = temporary_name();
        int fd = mount_.create(*temporary);
        if (fd == -EEXIST)
            continue;
        if (fd != -EAGAIN)
            return fd;
        if (a.patience->over()) {
            *status = impatient(*a.patience, "too many files are being received");
            return -EAGAIN;
        }
        pause_a_step();
    }
}

/* To the mount and, where the service is not told the miner, to the reader of facts, each on a thread of its own: the service reads along, too,
 * and one would wait for the other. The verdict of the mount comes first, for its text is the one that NAME.error has. */
int Jobs::write_document(const Attempt &a, const std::string &head, std::string *temporary,
                         Status *status)
{
    errmsg err = {""};
    facts facts;
    struct stat st;
    std::thread reader;
    int read = 0;

    int fd = create_temporary(a, temporary, status);
    if (fd < 0)
        return fd;
    if (head.empty())
        reader = std::thread([&] { read = read_facts(*a.message, &facts, &err); });
    int ret = write_pieces(fd, *a.message, head);
    int seen = fstat(fd, &st) < 0 ? -errno : 0;
    int closed = close(fd) < 0 ? -errno : 0;
    if (reader.joinable())
        reader.join();
    ret = ret < 0 ? ret : closed < 0 ? closed : seen;
    if (ret == 0)
        *a.file = st.st_ino;
    if (ret == 0 && read < 0)
        *status = status_of(read, err.text);
    if (ret == 0 && read == 0 && head.empty())
        ret = check_request(a.message->submission(), facts, status);
    return ret < 0 ? ret : read;
}

/* A refused rename leaves its reason under the name that was asked for, a moment after: the caller has been told, and nobody else
 * would take it away. What a job of that name has is the job's. */
void Jobs::forget_refusal(const std::string &name)
{
    JobView view;

    for (int tries = 0; tries < 50; tries++) {
        if (mount_.look(name, &view) < 0 || view.file != 0 || mount_.remove(name + ".error") == 0)
            return;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}

int Jobs::upload_as(const Attempt &a, const std::string &head, Status *status)
{
    std::string temporary;
    int ret = wait_for_place(a, status);

    if (ret < 0)
        return ret;
    ret = write_document(a, head, &temporary, status);
    const bool renames = ret == 0;
    if (renames)
        ret = mount_.rename(temporary, a.name);
    if (ret == -EBUSY) { /* somebody else's of this name, in between: the next attempt finds it */
        mount_.remove(temporary);
        return -EBUSY;
    }
    if (ret < 0 && status->ok() && !is_gone(ret)) {
        std::string why;
        mount_.read_of_job(temporary, ".error", error_max, &why);
        *status = status_of(ret, first_line(why));
        if (renames)
            forget_refusal(a.name);
    }
    if (ret < 0)
        mount_.remove(temporary);
    return ret;
}

/* What is wrong is said of the document as it came. */
int Jobs::upload(const Attempt &a, Status *status)
{
    const std::string head = head_with_miner(*a.message);
    int ret = upload_as(a, head, status);

    if (ret != -EBADMSG || head.empty())
        return ret;
    *status = Status::OK;
    return upload_as(a, "", status);
}

/* Of a file that is there already, in whatever wrapping. */
int Jobs::content_of_file(const std::string &name, uint8_t content_id[32])
{
    std::string buffer(piece_max, '\0');
    FactsReader reader = make_reader();
    facts facts;
    ssize_t n = 0;
    int fd = mount_.open_document(name);

    if (fd < 0)
        return fd;
    int ret = reader ? 0 : -ENOMEM;
    while (ret == 0 && (n = read(fd, &buffer[0], buffer.size())) != 0) {
        if (n > 0)
            ret = facts_feed(reader.get(), buffer.data(), static_cast<size_t>(n), nullptr);
        else if (errno != EINTR)
            ret = -errno;
    }
    close(fd);
    if (ret == 0)
        ret = facts_finish(reader.get(), &facts, nullptr);
    if (ret == 0)
        memcpy(content_id, facts.content_id, sizeof(facts.content_id));
    return ret;
}

/* What was read by name between two looks was of one job, if both see the same. */
bool Jobs::is_still(const std::string &name, uint64_t file) const
{
    JobView view;

    return mount_.look(name, &view) == 0 && view.file == file;
}

/* Whether the job that is there is of this content. */
int Jobs::is_same(const Attempt &a, const JobView &view, const facts &facts, bool *same)
{
    uint8_t content_id[sizeof(facts.content_id)];
    std::string json;
    int ret;

    if (view.state == JobState::DONE) {
        ret = mount_.read_of_job(a.name, ".report", report_max, &json);
        std::string found = report_read(json).content_sha256;
        if (ret == 0 && (found.size() != 2 * sizeof(content_id) ||
                         hex_decode(content_id, found.c_str(), sizeof(content_id)) < 0))
            ret = -EBADMSG;
    } else {
        ret = content_of_file(a.name, content_id);
    }
    if (ret == 0)
        *same = memcmp(content_id, facts.content_id, sizeof(content_id)) == 0;
    return ret;
}

/* -EBUSY without a status: it has changed meanwhile, look again. */
int Jobs::join_or_upload(const Attempt &a, const JobView &view, Status *status)
{
    bool same = false, ended = view.state == JobState::DONE;
    errmsg err = {""};
    facts facts;
    int ret = read_facts(*a.message, &facts, &err);

    if (ret < 0) {
        *status = status_of(ret, err.text);
        return ret;
    }
    ret = check_request(a.message->submission(), facts, status);
    if (ret < 0)
        return ret;
    ret = is_same(a, view, facts, &same);
    if (ret == -ENOENT || (ret == 0 && !is_still(a.name, view.file)))
        return -EBUSY;
    if (ret < 0)
        return ret;
    *a.file = view.file;
    if (same)
        return 0;
    if (ended)
        return upload(a, status);
    *status = Status(StatusCode::ALREADY_EXISTS,
                     "a request of this id and of another content has not ended");
    return -EEXIST;
}

/* Once. -EBUSY: what was there has changed meanwhile; -ENOTCONN and the like: the service went away. Any other failure has *status. */
int Jobs::attempt(const Attempt &a, Status *status)
{
    JobView view;
    int ret = mount_.look(a.name, &view);

    if (ret < 0)
        return ret;
    /* What has failed is worth another try: who asks again wants one. */
    if (view.state == JobState::ABSENT || view.state == JobState::FAILED)
        return upload(a, status);
    return join_or_upload(a, view, status);
}

/* The name is a job's by now, so this is too late by the blink of an eye at most. */
void Jobs::prioritize(const Attempt &a) const
{
    static const char *const names[] = {"normal", "low", "normal", "high", "critical"};
    uint64_t wanted = a.message->submission().priority;
    std::string now, file = "jobs/" + a.name + ".priority";

    if (wanted >= sizeof(names) / sizeof(names[0]) || mount_.read(file, 64, &now) < 0 ||
        first_line(now) == names[wanted])
        return;
    int ret = mount_.write(file, std::string(names[wanted]) + "\n");
    if (ret == -EPERM && wanted == 4)
        ret = mount_.write(file,
                           "high\n"); /* critical is for a group that the service was not told of */
    if (ret < 0)
        log_line(LINE_WARN, {{"job", a.name.c_str()},
                             {"msg", "cannot set the priority"},
                             {"error", strerror(-ret)}});
}

Status Jobs::submit(const std::string &id, const Message &message, const Patience &patience,
                    uint64_t *file)
{
    const std::string name = job_name_of(id);
    Turn turn(this, name);
    Status status;
    int ret;

    if (!turn.take(patience))
        return impatient(patience, "another request of this id is being received");
    for (;;) {
        const Attempt a = {name, &message, &patience, file};
        ret = attempt(a, &status);
        if (ret == 0)
            prioritize(a);
        if ((ret != -EBUSY && !is_gone(ret)) || !status.ok())
            break;
        if (patience.over() && ret == -EBUSY)
            return impatient(patience, "a job of this id comes and goes");
        if (patience.over())
            return impatient(patience,
                             ret == -ESHUTDOWN ? "proofd is stopping" : "proofd is not there",
                             StatusCode::UNAVAILABLE);
        pause_a_step();
    }
    return ret < 0 && status.ok() ? status_of(ret, "") : status;
}

/* ---- wait ---- */

/* 0; -EAGAIN: not yet, or no more. */
int Jobs::read_outcome(const std::string &name, const JobView &view, Outcome *out)
{
    std::string json;
    int ret;

    if (view.state == JobState::FAILED) {
        out->end = Outcome::FAILED;
        ret = mount_.read_of_job(name, ".error", error_max, &out->error);
        out->error = first_line(out->error);
        mount_.read_of_job(name, ".report", report_max, &json);
    } else {
        out->end = Outcome::DONE;
        ret = mount_.read_of_job(name, ".proof.bin", proof_max, &out->proof);
        if (ret == 0)
            ret = mount_.read_of_job(name, ".report", report_max, &json);
    }
    if (ret < 0)
        return -EAGAIN;
    Report report = report_read(json);
    out->queue_wait_ms = static_cast<uint64_t>(report.waited_ms);
    out->srs_load_ms = static_cast<uint64_t>(report.params_ms);
    out->synthesis_ms = static_cast<uint64_t>(report.synthesis_ms);
    out->gpu_compute_ms = static_cast<uint64_t>(report.prove_ms);
    out->total_ms = static_cast<uint64_t>(report.waited_ms + report.ran_ms);
    return 0;
}

/* A mount that is away is waited for: the job is in its store. */
Status Jobs::await(const std::string &id, uint64_t file, const Patience &patience, Outcome *out)
{
    const std::string name = job_name_of(id);
    Watch::Waiter waiter(watch_, name);
    int64_t publishing_since = now_ms();

    for (;;) {
        JobView view;
        int ret = mount_.look(name, &view);
        bool ended = view.state == JobState::DONE || view.state == JobState::FAILED;

        if (ret < 0 && !is_gone(ret))
            return status_of(ret, "");
        if (ret == 0 && view.state == JobState::ABSENT && !file)
            return Status(StatusCode::NOT_FOUND, "no such job");
        if (ret == 0 && (view.state == JobState::ABSENT || (file && view.file != file))) {
            *out = Outcome();
            out->end = Outcome::CANCELLED;
            out->error = view.state == JobState::ABSENT
                             ? "the job was removed"
                             : "the job was removed, and another one has its name";
            return Status::OK;
        }
        if (ret == 0)
            file = view.file;
        if (ret == 0 && ended && read_outcome(name, view, out) == 0) {
            if (is_still(name, file))
                return Status::OK;
            continue;
        }
        if (view.state != JobState::PUBLISHING)
            publishing_since = now_ms();
        else if (now_ms() - publishing_since > proof_is_taken_ms)
            return Status(StatusCode::NOT_FOUND,
                          "the job is done, but somebody has taken its proof away");

        int64_t look_at = now_ms() + (ended ? step_ms : look_again_ms);
        while (now_ms() < look_at) {
            if (patience.over()) {
                out->end = Outcome::TIMEOUT;
                return Status::OK;
            }
            if (waiter.wait(step_ms))
                break;
        }
    }
}

/* ---- cancel ---- */

Status Jobs::cancel(const std::string &id, bool *was_running)
{
    const std::string name = job_name_of(id);
    JobView view;
    int ret = mount_.look(name, &view);

    *was_running = false;
    /* Removing a job that has ended would forget its proof. */
    if (ret == 0 && view.state == JobState::UNFINISHED)
        ret = mount_.remove(name);
    else if (ret == 0)
        return Status::OK;
    *was_running = ret == 0;
    return ret < 0 && ret != -ENOENT ? status_of(ret, "") : Status::OK;
}

/* ---- what a dead instance has left ---- */

void Jobs::tidy() const
{
    std::vector<std::string> files;
    const std::string prefix = temporary_prefix;
    int pid;

    if (mount_.list("jobs", &files) < 0)
        return;
    for (const std::string &file : files) {
        if (file.rfind(prefix, 0) == 0 && sscanf(file.c_str() + prefix.size(), "%d-", &pid) == 1 &&
            kill(pid, 0) < 0 && errno == ESRCH && mount_.is_own(file))
            mount_.remove(file);
    }
}
