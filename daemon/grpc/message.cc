#include "daemon/grpc/message.h"

#include <algorithm>

#include "daemon/grpc/names.h"
#include "daemon/grpc/utf8.h"

/* Of the wire format, and the numbers of the fields: proofd.proto. */
enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };
enum {
    REQUEST_ID = 1,
    PROOF_KIND = 2,
    SECTOR_SIZE = 3,
    PRIORITY = 5,
    VANILLA_PROOF = 10,
    SECTOR_NUMBER = 20,
    MINER_ID = 21
};
enum { SUBMIT = 1 }; /* of a ProveRequest */

bool Message::byte(Place *p, uint64_t end, uint8_t *out) const
{
    if (p->at >= end)
        return false;
    while (p->offset == slices_[p->slice].size()) {
        p->slice++;
        p->offset = 0;
    }
    *out = slices_[p->slice].begin()[p->offset++];
    p->at++;
    return true;
}

bool Message::varint(Place *p, uint64_t end, uint64_t *out) const
{
    uint64_t value = 0;
    uint8_t b;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (!byte(p, end, &b))
            return false;
        value |= static_cast<uint64_t>(b & 0x7f) << shift;
        if (!(b & 0x80)) {
            *out = value;
            return true;
        }
    }
    return false;
}

bool Message::skip(Place *p, uint64_t end, uint64_t len) const
{
    if (len > end - p->at)
        return false;
    p->at += len;
    while (len > slices_[p->slice].size() - p->offset) {
        len -= slices_[p->slice].size() - p->offset;
        p->slice++;
        p->offset = 0;
    }
    p->offset += len;
    return true;
}

bool Message::skip_field(Place *p, uint64_t end, unsigned wire) const
{
    uint64_t value;

    switch (wire) {
    case WIRE_VARINT:
        return varint(p, end, &value);
    case WIRE_FIXED64:
        return skip(p, end, 8);
    case WIRE_BYTES:
        return varint(p, end, &value) && skip(p, end, value);
    case WIRE_FIXED32:
        return skip(p, end, 4);
    default:
        return false;
    }
}

bool Message::text(Place *p, uint64_t end, std::string *out, std::string *why) const
{
    uint64_t len;
    uint8_t b;

    if (!varint(p, end, &len) || len > end - p->at)
        return false;
    if (len > REQUEST_ID_MAX) {
        *why = "request_id is longer than " + std::to_string(REQUEST_ID_MAX) + " bytes";
        return false;
    }
    out->clear();
    for (; len > 0 && byte(p, end, &b); len--)
        *out += static_cast<char>(b);
    if (len == 0 && is_utf8(*out))
        return true;
    if (len == 0)
        *why = "request_id is not UTF-8";
    return false;
}

/* One field whose tag was read. Where one is there twice the last one counts, as everywhere in protobuf. */
bool Message::field(Place *p, uint64_t end, uint64_t tag, std::string *why)
{
    unsigned wire = tag & 7;
    Submission &s = submission_;

    if (wire == WIRE_VARINT) {
        uint64_t value;
        if (!varint(p, end, &value))
            return false;
        switch (tag >> 3) {
        case PROOF_KIND:
            s.proof_kind = value;
            break;
        case SECTOR_SIZE:
            s.sector_size = value;
            break;
        case PRIORITY:
            s.priority = value;
            break;
        case SECTOR_NUMBER:
            s.sector_number = value;
            break;
        case MINER_ID:
            s.miner_id = value;
            break;
        default:
            break;
        }
        return true;
    }
    if (wire == WIRE_BYTES && tag >> 3 == REQUEST_ID)
        return text(p, end, &s.request_id, why);
    if (wire == WIRE_BYTES && tag >> 3 == VANILLA_PROOF) {
        if (!varint(p, end, &document_len_))
            return false;
        document_ = *p;
        s.has_document = document_len_ > 0;
        return skip(p, end, document_len_);
    }
    return skip_field(p, end, wire);
}

bool Message::request(Place *p, uint64_t end, std::string *why)
{
    uint64_t tag;

    while (p->at < end) {
        if (!varint(p, end, &tag) || !field(p, end, tag, why))
            return false;
    }
    return true;
}

bool Message::prove(Place *p, uint64_t end, std::string *why)
{
    uint64_t tag, len;

    while (p->at < end) {
        if (!varint(p, end, &tag))
            return false;
        if (tag != (SUBMIT << 3 | WIRE_BYTES)) {
            if (!skip_field(p, end, tag & 7))
                return false;
            continue;
        }
        if (!varint(p, end, &len) || len > end - p->at || !request(p, p->at + len, why))
            return false;
    }
    return true;
}

bool Message::read(const grpc::ByteBuffer &buffer, bool wrapped, std::string *why)
{
    Place p{0, 0, 0};

    *why = "not a well-formed request";
    if (!buffer.Dump(&slices_).ok())
        return false;
    return wrapped ? prove(&p, buffer.Length(), why) : request(&p, buffer.Length(), why);
}

std::vector<Message::Piece> Message::document() const
{
    std::vector<Piece> out;
    uint64_t left = document_len_;
    size_t offset = document_.offset;

    for (size_t i = document_.slice; left > 0; i++, offset = 0) {
        size_t len = std::min<uint64_t>(left, slices_[i].size() - offset);
        if (len > 0)
            out.push_back({slices_[i].begin() + offset, len});
        left -= len;
    }
    return out;
}
