#include "tools/bench/tcp.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "core/base/mutex.h"

namespace millrace::bench {
namespace {

// A socket of the loopback interface; closed when destroyed.
class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }
  ~Socket() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

Status SystemError(const char* what) { return Internal(what, ": ", std::strerror(errno)); }

StatusOr<Socket> Listen(sockaddr_in* address) {
  Socket socket(::socket(AF_INET, SOCK_STREAM, 0));
  if (socket.get() < 0) return SystemError("socket");
  *address = {};
  address->sin_family = AF_INET;
  address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof *address;
  auto* const generic = reinterpret_cast<sockaddr*>(address);
  if (bind(socket.get(), generic, size) != 0) return SystemError("bind");
  if (listen(socket.get(), 1) != 0) return SystemError("listen");
  if (getsockname(socket.get(), generic, &size) != 0) return SystemError("getsockname");
  return socket;
}

bool WriteAll(int socket, const char* from, int64_t bytes) {
  while (bytes > 0) {
    const ssize_t n = send(socket, from, static_cast<size_t>(bytes), MSG_NOSIGNAL);
    if (n <= 0) return false;
    from += n;
    bytes -= n;
  }
  return true;
}

bool ReadAll(int socket, char* to, int64_t bytes) {
  while (bytes > 0) {
    const ssize_t n = recv(socket, to, static_cast<size_t>(bytes), 0);
    if (n <= 0) return false;
    to += n;
    bytes -= n;
  }
  return true;
}

void NoDelay(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// Answers each byte that comes in with `bytes` bytes, until the connection ends.
void Serve(int listening, int64_t bytes) {
  const Socket connection(accept(listening, nullptr, nullptr));
  if (connection.get() < 0) return;
  NoDelay(connection.get());
  const std::string data(static_cast<size_t>(bytes), 'x');
  char request;
  while (ReadAll(connection.get(), &request, 1)) {
    if (!WriteAll(connection.get(), data.data(), bytes)) return;
  }
}

}  // namespace

StatusOr<std::vector<int>> FreePorts(int count) {
  std::vector<Socket> held;  // all at once, so that they differ
  std::vector<int> ports;
  for (int i = 0; i < count; ++i) {
    sockaddr_in address;
    MR_ASSIGN_OR_RETURN(Socket socket, Listen(&address));
    ports.push_back(ntohs(address.sin_port));
    held.push_back(std::move(socket));
  }
  return ports;
}

StatusOr<std::vector<double>> TimeTcp(int64_t bytes, int rounds, const Environment& environment) {
  sockaddr_in address;
  MR_ASSIGN_OR_RETURN(const Socket listening, Listen(&address));
  const Socket client(::socket(AF_INET, SOCK_STREAM, 0));
  if (connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return SystemError("connect");
  }
  NoDelay(client.get());
  Notification ended;
  environment.scheduler->Schedule([&] {
    Serve(listening.get(), bytes);
    ended.Notify();
  });
  std::string buffer(static_cast<size_t>(bytes), '\0');
  std::vector<double> seconds;
  bool good = true;
  for (int i = 0; good && i < rounds; ++i) {
    const int64_t start = environment.clock->NowNanos();
    const char request = 'r';
    good = WriteAll(client.get(), &request, 1) && ReadAll(client.get(), buffer.data(), bytes);
    seconds.push_back(static_cast<double>(environment.clock->NowNanos() - start) * 1e-9);
  }
  shutdown(client.get(), SHUT_RDWR);
  ended.Wait();
  if (!good) return SystemError("a plain TCP connection");
  return seconds;
}

}  // namespace millrace::bench
