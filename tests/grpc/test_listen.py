"""Where it listens and to whom: the socket, TCP, TLS, probes, messages that are too long."""
import os
import socket
import stat
import subprocess

import fixture as f
from fixture import expect, refused, same
import grpc
from grpc import StatusCode

program = f.BUILD + "/proofd-grpc"


def starts_not(what, part, *options):
    p = subprocess.run([program, "--mount", f.work, *options], capture_output=True, text=True, timeout=60)
    expect(what, p.returncode == 2 and part in p.stderr, (p.returncode, p.stderr))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


# ---- what is not allowed
starts_not("plain text beyond this machine", "insecure = yes", "--listen", "0.0.0.0:9820")
starts_not("by another name", "insecure = yes", "--listen", "[::]:9820")
starts_not("a certificate without a key", "go together", "--listen", "127.0.0.1:9820", "--tls-cert", "/x")
starts_not("a relative socket", "begins with /", "--listen", "unix:x")
starts_not("no address", "neither", "--listen", "nonsense")
for port in ("99999", "65536", "0", "", "-1", "98x"):
    starts_not(f"the port {port!r}", f"'{port}' is not a port from 1 to 65535", "--listen", f"127.0.0.1:{port}")
starts_not("too long messages", "max_message", "--max-message", "641M")
starts_not("no number", "uploads: 'x' is not a number from 1 to 64", "--uploads", "x")
starts_not("no mode", "socket_mode: '999' is not an octal number", "--socket-mode", "999")
starts_not("a user who is not there", "there is no user no-such-user", "--socket-owner", "no-such-user")
starts_not("a group that is not there", "there is no group no-such-group", "--socket-group", "no-such-group")
starts_not("an unknown option", "unknown option --x", "--x")
nowhere = subprocess.run([program, "--mount", f.work, "--listen", f"unix:{f.work}/absent/socket"], capture_output=True, text=True, timeout=60)
expect("a socket in no directory", nowhere.returncode == 1 and "absent/: No such file" in nowhere.stderr, nowhere)
absent = subprocess.Popen([program, "--mount", f.work + "/absent", "--listen", f"unix:{f.work}/early"], stderr=subprocess.PIPE, text=True)
lines = [absent.stderr.readline(), absent.stderr.readline()]
absent.terminate()
same("without proofd it listens", sum("msg=listening" in line for line in lines), 1)
same("and says what is missing", sum(f'<4>msg="proofd is not there" mount={f.work}/absent' in line for line in lines), 1)
absent.communicate()
config = f.work + "/conf"
with open(config, "w") as out:
    out.write("# for Curio\n[proofd-grpc]\ninsecure = yes\nlisten = 0.0.0.0:9820\nmax_message = 640M\nsocket_mode = 0600\n")
text = subprocess.run([program, "--config", config, "--check-config", "--uploads", "7"], capture_output=True, text=True).stdout
same("a file and the command line", [line for line in text.splitlines() if line.split()[0] in ("insecure", "listen", "max_message", "socket_mode", "uploads")],
     ["listen = 0.0.0.0:9820", "socket_mode = 0600", "insecure = yes", "uploads = 7", "max_message = 671088640"])
with open(config, "a") as out:
    out.write("lisen = x\n")
starts_not("an unknown key, with its line", "conf:7: unknown key lisen", "--config", config)

# ---- a Unix socket
owner = ["--socket-owner", "65534", "--socket-group", "65533"] if os.geteuid() == 0 else []
s = f.Service(known=f.documents()[:1], grpc_options=["--socket-mode", "0620", "--max-message", "1M", *owner])
c = s.client()
c.status()
st = os.stat(s.socket)
same("its mode", oct(stat.S_IMODE(st.st_mode)), "0o620")
if owner:
    same("its owner and group", (st.st_uid, st.st_gid), (65534, 65533))
refused("a message that is too long", StatusCode.RESOURCE_EXHAUSTED, "", lambda: c.prove("long", b"x" * (1 << 21)))
same("the next one is served", c.prove("ok", f.documents()[0]).status, f.COMPLETED)

# ---- probes
health = "/grpc.health.v1.Health/Check"


def healthy(channel, service):
    check = channel.unary_unary(health, request_serializer=f.probes.HealthRequest.SerializeToString, response_deserializer=f.probes.HealthResponse.FromString)
    return check(f.probes.HealthRequest(service=service), timeout=60, wait_for_ready=True).status


SERVING, NOT_SERVING = 1, 2
for name in ("", "cuzk.v1.ProvingEngine"):
    same(f"health of '{name}'", healthy(c.channel, name), SERVING)
refused("health of another", StatusCode.NOT_FOUND, "", lambda: healthy(c.channel, "other"))
reflect = c.channel.stream_stream("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                                  request_serializer=f.probes.ReflectionRequest.SerializeToString, response_deserializer=f.probes.ReflectionResponse.FromString)
answers = list(reflect(iter([f.probes.ReflectionRequest(list_services="*"), f.probes.ReflectionRequest(file_containing_symbol="cuzk.v1.ProvingEngine")]), timeout=60))
expect("reflection lists the service", "cuzk.v1.ProvingEngine" in [x.name for x in answers[0].list_services_response.service])

# What it describes is what the facts say: each field's number, name and type, as in curio.proto.
from google.protobuf import descriptor_pb2  # noqa: E402
described = descriptor_pb2.FileDescriptorProto.FromString(answers[1].file_descriptor_response.file_descriptor_proto[0])
messages = {m.name: m for m in described.message_type}
methods = {m.name: (messages[m.input_type.split(".")[-1]], messages[m.output_type.split(".")[-1]]) for m in described.service[0].method}
same("its methods", sorted(methods), sorted(f.METHODS))
plain = {descriptor_pb2.FieldDescriptorProto.TYPE_ENUM: descriptor_pb2.FieldDescriptorProto.TYPE_UINT32}


def fields(message):
    return [(x.number, x.name, x.label, plain.get(x.type, x.type)) for x in message.field]


for name, (q, a) in f.METHODS.items():
    wanted = [descriptor_pb2.DescriptorProto() for _ in range(2)]
    q.DESCRIPTOR.CopyToProto(wanted[0])
    a.DESCRIPTOR.CopyToProto(wanted[1])
    same("fields of " + name, [fields(m) for m in methods[name]], [fields(m) for m in wanted])
for ours, theirs in (("GPUStatus", f.curio.Gpu), ("SRSStatus", f.curio.Srs), ("QueueStatus", f.curio.Queue)):
    wanted = descriptor_pb2.DescriptorProto()
    theirs.DESCRIPTOR.CopyToProto(wanted)
    same("fields of " + ours, fields(messages[ours]), fields(wanted))
enums = {e.name: {v.name: v.number for v in e.value} for e in described.enum_type}
same("kinds", enums["ProofKind"], dict(PROOF_KIND_UNSPECIFIED=0, POREP_SEAL_COMMIT=1, SNAP_DEALS_UPDATE=2, WINDOW_POST_PARTITION=3, WINNING_POST=4))
same("priorities", enums["Priority"], dict(PRIORITY_UNSPECIFIED=0, LOW=1, NORMAL=2, HIGH=3, CRITICAL=4))
same("ends", {v.name: v.number for v in messages["AwaitProofResponse"].enum_type[0].value}, dict(UNKNOWN=0, COMPLETED=1, FAILED=2, CANCELLED=3, TIMEOUT=4))
same("tiers", {v.name: v.number for v in messages["SRSStatus"].enum_type[0].value}, dict(HOT=0, WARM=1, COLD=2))

# ---- TCP, on loopback
port = free_port()
s.stop()
s.listen = f"127.0.0.1:{port}"
s.start()
same("TCP", s.client().prove("ok", f.documents()[0]).status, f.COMPLETED)
second = subprocess.run([program, "--mount", s.mount, "--listen", s.listen], capture_output=True, text=True, timeout=60)
expect("a second one of this address does not start", second.returncode == 1 and "cannot listen" in second.stderr, second)
s.stop()


# ---- TLS, with certificates of clients
def openssl(*args):
    subprocess.run(["openssl", *args], check=True, capture_output=True, cwd=f.work)


for name in ("ca", "other"):
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}", "-keyout", name + ".key", "-out", name + ".pem")
for name, ca in (("server", "ca"), ("client", "ca"), ("stranger", "other")):
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}", "-keyout", name + ".key", "-out", name + ".csr")
    with open(f.work + "/ext", "w") as out:
        out.write("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", name + ".csr", "-CA", ca + ".pem", "-CAkey", ca + ".key", "-CAcreateserial", "-extfile", "ext", "-out", name + ".pem")


def pem(name):
    return open(os.path.join(f.work, name), "rb").read()


s.listen = f"0.0.0.0:{port}"
s.grpc_options = ["--tls-cert", f.work + "/server.pem", "--tls-key", f.work + "/server.key", "--tls-client-ca", f.work + "/ca.pem"]
s.start()
address = f"127.0.0.1:{port}"
known = f.Client(address, grpc.ssl_channel_credentials(pem("ca.pem"), pem("client.key"), pem("client.pem")))
same("TLS with a certificate", known.prove("ok", f.documents()[0]).status, f.COMPLETED)
for what, credentials in (("no certificate", grpc.ssl_channel_credentials(pem("ca.pem"))),
                          ("a stranger's", grpc.ssl_channel_credentials(pem("ca.pem"), pem("stranger.key"), pem("stranger.pem"))),
                          ("plain text", None)):
    refused(what, StatusCode.UNAVAILABLE, "", lambda: f.Client(address, credentials)("GetStatus", timeout=20, wait=False))

# ---- health follows proofd
same("healthy", healthy(known.channel, ""), SERVING)
s.kill_proofd()
expect("not without proofd", f.wait_for(10, lambda: healthy(known.channel, "") == NOT_SERVING))
s.start_proofd()
expect("healthy again", f.wait_for(10, lambda: healthy(known.channel, "cuzk.v1.ProvingEngine") == SERVING))
f.finish()
