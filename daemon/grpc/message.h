/*
 * A SubmitProofRequest in the pieces in which it came off the wire.
 *
 * Generated code would copy a document of 51.6 MB into one string, by doubling it; here its bytes stay where gRPC has put them, and are
 * handed on piece by piece. Everything else of the message is small and bounded.
 *
 * A Message belongs to one thread at a time.
 */
#ifndef GRPC_MESSAGE_H
#define GRPC_MESSAGE_H

#include <cstdint>
#include <grpcpp/support/byte_buffer.h>
#include <string>
#include <vector>

/* What is absent is 0 or empty. */
struct Submission {
    std::string request_id;
    uint64_t proof_kind = 0, sector_size = 0, priority = 0, sector_number = 0, miner_id = 0;
    bool has_document = false;
};

class Message
{
  public:
    /* `wrapped`: a ProveRequest, which holds one. False: no such message, *why says so. */
    bool read(const grpc::ByteBuffer &buffer, bool wrapped, std::string *why);
    const Submission &submission() const
    {
        return submission_;
    }
    /* The document, piece by piece, in order. */
    struct Piece {
        const void *bytes;
        size_t len;
    };
    std::vector<Piece> document() const;

  private:
    struct Place {
        size_t slice, offset;
        uint64_t at; /* in the whole */
    };
    bool byte(Place *p, uint64_t end, uint8_t *out) const;
    bool varint(Place *p, uint64_t end, uint64_t *out) const;
    bool skip(Place *p, uint64_t end, uint64_t len) const;
    bool skip_field(Place *p, uint64_t end, unsigned wire) const;
    bool text(Place *p, uint64_t end, std::string *out, std::string *why) const;
    bool field(Place *p, uint64_t end, uint64_t tag, std::string *why);
    bool request(Place *p, uint64_t end, std::string *why);
    bool prove(Place *p, uint64_t end, std::string *why);

    std::vector<grpc::Slice> slices_;
    Submission submission_;
    Place document_{0, 0, 0};
    uint64_t document_len_ = 0;
};

#endif
