#include "distributed/grpc/channel.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "grpcpp/generic/generic_stub.h"

namespace millrace {
namespace {

// Beyond some centuries, points of time overflow.
constexpr absl::Duration kForEver = absl::Hours(24 * 365 * 10);

int Millis(absl::Duration duration) {
  return static_cast<int>(std::clamp<int64_t>(absl::ToInt64Milliseconds(duration), 1,
                                              std::numeric_limits<int32_t>::max()));
}

// `set(name, value)` for what both ends of a connection have.
template <typename Set>
void SetCommonArguments(const GrpcKeepalive& keepalive, const Set& set) {
  set(GRPC_ARG_KEEPALIVE_TIME_MS, Millis(keepalive.time));
  set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Millis(keepalive.timeout));
  set(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  set(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // no limit
  set(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1);
  set(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, -1);
  // A chunk in few frames, read in pieces that malloc keeps: see KeepFreedMemory.
  set(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 8 << 20);
  set(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 16 << 20);
  set(GRPC_ARG_TCP_READ_CHUNK_SIZE, 256 << 10);
  set(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, 1 << 20);
}

// gRPC reads into memory from malloc, which would give most of it back to the system each time:
// then the pages that are fresh for every message cost as much as copying it.
void KeepFreedMemory() {
  static const bool done = [] {
    mallopt(M_MMAP_THRESHOLD, 8 << 20);
    mallopt(M_TRIM_THRESHOLD, 128 << 20);
    return true;
  }();
  static_cast<void>(done);
}

// gRPC joins its callback threads when the last channel that uses them goes. That may happen within
// a callback, so on one of those threads, and would end the process. One channel that never goes
// prevents it.
void KeepCallbackThreads() {
  // "used", as leak checkers must find it, and nothing reads it.
  [[gnu::used]] static const auto* const kept = [] {
    auto* channel = new std::shared_ptr<grpc::Channel>(
        grpc::CreateChannel("unix:/nonexistent", grpc::InsecureChannelCredentials()));
    struct Call {
      grpc::ClientContext context;
      grpc::Slice nothing;
      grpc::ByteBuffer request{&nothing, 1};  // a default one holds no message, not an empty one
      grpc::ByteBuffer response;
    };
    auto* call = new Call;
    call->context.TryCancel();  // so that it ends at once
    grpc::GenericStub stub(*channel);
    stub.UnaryCall(&call->context, "/millrace.None/None", {}, &call->request, &call->response,
                   [call](const grpc::Status&) { delete call; });
    return channel;
  }();
}

}  // namespace

std::shared_ptr<grpc::Channel> NewGrpcChannel(const std::string& address, GrpcTraffic traffic,
                                              const GrpcKeepalive& keepalive) {
  KeepFreedMemory();
  KeepCallbackThreads();
  grpc::ChannelArguments arguments;
  SetCommonArguments(keepalive,
                     [&](const char* name, int value) { arguments.SetInt(name, value); });
  // A restarted peer is found soon.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 500);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // What may be sent again is decided above, by request ids; and gRPC would keep copies for it.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // Peers are reached directly, whatever the environment says.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  if (traffic == GrpcTraffic::kBulk) arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

void SetServerArguments(const GrpcKeepalive& keepalive, grpc::ServerBuilder& builder) {
  KeepFreedMemory();
  SetCommonArguments(keepalive,
                     [&](const char* name, int value) { builder.AddChannelArgument(name, value); });
  // Else a second server could listen at the same port, and each would get some of the calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Peers may ping as often as they like; by default a server hangs up on such.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
}

bool IsLoopback(absl::string_view address) {
  if (absl::StartsWith(address, "unix:")) return true;
  const size_t colon = address.rfind(':');
  absl::string_view host = colon == absl::string_view::npos ? address : address.substr(0, colon);
  if (host == "localhost" || host == "[::1]") return true;
  // 127.0.0.0/8
  const std::vector<absl::string_view> parts = absl::StrSplit(host, '.');
  return parts.size() == 4 && parts[0] == "127" &&
         std::all_of(parts.begin(), parts.end(), [](absl::string_view part) {
           uint32_t value;
           return absl::SimpleAtoi(part, &value) && value < 256;
         });
}

grpc::Status ToGrpc(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const int code = status.error_code();
  const bool known = code > 0 && code <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  return Status(known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown,
                status.error_message());
}

absl::Duration TimeLeft(const grpc::ServerContextBase& context) {
  const std::chrono::system_clock::time_point deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return absl::InfiniteDuration();
  const auto now = std::chrono::system_clock::now();  // layers: gRPC deadline
  return absl::FromChrono(deadline - now);
}

void SetTimeout(absl::Duration timeout, grpc::ClientContext& context) {
  if (timeout < kForEver) context.set_deadline(DeadlineAfter(timeout));
}

std::chrono::system_clock::time_point DeadlineAfter(absl::Duration timeout) {
  const auto now = std::chrono::system_clock::now();  // layers: gRPC deadline
  return now + std::chrono::duration_cast<std::chrono::system_clock::duration>(
                   absl::ToChronoNanoseconds(std::min(timeout, kForEver)));
}

}  // namespace millrace
