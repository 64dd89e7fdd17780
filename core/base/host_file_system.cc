#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <limits>
#include <utility>

#include "core/base/file.h"

namespace millrace {
namespace {

// Smaller appends are gathered up to this.
constexpr size_t kBufferBytes = 64 << 10;

// "cannot open /a/b: No such file or directory"
template <typename... Parts>
Status Error(int error, const Parts&... what) {
  return absl::ErrnoToStatus(error, StrCat("cannot ", what...));
}

// The folder that holds the entry `path`, in the form that open(2) wants.
std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

int OpenRetrying(const std::string& path, int flags) {
  int fd;
  do {
    fd = open(path.c_str(), flags | O_CLOEXEC, 0666);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

int SyncRetrying(int fd) {
  int result;
  do {
    result = fsync(fd);
  } while (result < 0 && errno == EINTR);
  return result;
}

Status SyncFolder(const std::string& folder) {
  const int fd = OpenRetrying(folder, O_RDONLY | O_DIRECTORY);
  if (fd < 0) return Error(errno, "open the folder ", folder);
  const int error = SyncRetrying(fd) < 0 ? errno : 0;
  close(fd);
  // Some file systems have nothing to sync for a folder, and say so.
  if (error != 0 && error != EINVAL) return Error(error, "sync the folder ", folder);
  return Status();
}

bool IsFolder(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

class HostWritableFile final : public WritableFile {
 public:
  HostWritableFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  ~HostWritableFile() override { Close().IgnoreError(); }

  Status Append(absl::string_view bytes) override {
    MR_RETURN_IF_ERROR(Usable());
    if (buffer_.size() + bytes.size() <= kBufferBytes) {
      buffer_.append(bytes.data(), bytes.size());
      return Status();
    }
    MR_RETURN_IF_ERROR(Flush());
    if (bytes.size() >= kBufferBytes) return Write(bytes);
    buffer_.assign(bytes.data(), bytes.size());
    return Status();
  }

  Status Flush() override {
    MR_RETURN_IF_ERROR(Usable());
    MR_RETURN_IF_ERROR(Write(buffer_));
    buffer_.clear();
    return Status();
  }

  Status Sync() override {
    MR_RETURN_IF_ERROR(Flush());
    if (SyncRetrying(fd_) < 0) status_ = Error(errno, "sync ", path_);
    return status_;
  }

  Status Close() override {
    if (fd_ < 0) return status_;
    if (status_.ok()) Flush().IgnoreError();  // it is kept in status_
    // Not again on EINTR: on Linux the descriptor is gone whatever close returns.
    const int result = close(std::exchange(fd_, -1));
    if (result < 0 && errno != EINTR && status_.ok()) status_ = Error(errno, "close ", path_);
    return status_;
  }

 private:
  Status Usable() const {
    if (status_.ok() && fd_ < 0)
      return FailedPrecondition("cannot write ", path_, ": it is closed");
    return status_;
  }

  Status Write(absl::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return status_ = Error(errno, "write ", path_);
      bytes.remove_prefix(written);
    }
    return Status();
  }

  const std::string path_;
  int fd_;  // -1 once closed
  std::string buffer_;
  // The first error. It stays: after it nobody knows what the file holds.
  Status status_;
};

class HostReadableFile final : public ReadableFile {
 public:
  HostReadableFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  ~HostReadableFile() override { close(fd_); }

  uint64_t size() const override {
    struct stat info;
    return fstat(fd_, &info) == 0 ? info.st_size : 0;
  }

  Status Read(uint64_t offset, uint64_t length, char* to) const override {
    constexpr uint64_t kMaximum = std::numeric_limits<off_t>::max();
    if (offset > kMaximum || length > kMaximum - offset) return BeyondEnd(offset, length);
    for (uint64_t done = 0; done < length;) {
      const ssize_t got = pread(fd_, to + done, length - done, offset + done);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return Error(errno, "read ", path_);
      if (got == 0) return BeyondEnd(offset, length);
      done += got;
    }
    return Status();
  }

 private:
  Status BeyondEnd(uint64_t offset, uint64_t length) const {
    return OutOfRange("cannot read ", length, " bytes at offset ", offset, " of ", path_,
                      ", which has ", size(), " bytes");
  }

  const std::string path_;
  const int fd_;
};

class HostFileSystem final : public FileSystem {
 public:
  StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    return OpenToWrite(path, O_TRUNC, "create ");
  }

  StatusOr<std::unique_ptr<WritableFile>> OpenForAppend(const std::string& path) override {
    return OpenToWrite(path, O_APPEND, "append to ");
  }

  StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    const int fd = OpenRetrying(path, O_RDONLY);
    if (fd < 0) return Error(errno, "open ", path);
    auto file = std::make_unique<HostReadableFile>(path, fd);
    struct stat info;
    if (fstat(fd, &info) < 0) return Error(errno, "open ", path);
    if (S_ISDIR(info.st_mode)) return Error(EISDIR, "open ", path);
    return file;
  }

  bool Exists(const std::string& path) override { return access(path.c_str(), F_OK) == 0; }

  Status CreateFolder(const std::string& path) override {
    // Each prefix that ends before a '/' or at the end, from the shortest.
    for (size_t end = 0; end < path.size();) {
      end = std::min(path.find('/', end + 1), path.size());
      const std::string folder = path.substr(0, end);
      if (mkdir(folder.c_str(), 0777) == 0) continue;
      const int error = errno;  // EEXIST, but also EROFS or EACCES, for a folder that exists
      if (!IsFolder(folder)) {
        return Error(error == EEXIST ? ENOTDIR : error, "create the folder ", folder);
      }
    }
    return Status();
  }

  StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    DIR* const entries = opendir(folder.empty() ? "." : folder.c_str());
    if (entries == nullptr) return Error(errno, "list the folder ", folder);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = readdir(entries)) {
      const absl::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    const int error = errno;
    closedir(entries);
    if (error != 0) return Error(error, "list the folder ", folder);
    std::sort(names.begin(), names.end());
    return names;
  }

  Status Rename(const std::string& from, const std::string& to) override {
    if (ParentOf(from) != ParentOf(to)) {
      return InvalidArgument("cannot rename ", from, " to ", to, ": they are in two folders");
    }
    if (rename(from.c_str(), to.c_str()) < 0) return Error(errno, "rename ", from, " to ", to);
    return SyncFolder(ParentOf(to));
  }

  Status Remove(const std::string& path) override {
    if (std::remove(path.c_str()) < 0) return Error(errno, "remove ", path);
    return Status();
  }

 private:
  static StatusOr<std::unique_ptr<WritableFile>> OpenToWrite(const std::string& path, int flags,
                                                             absl::string_view what) {
    const int fd = OpenRetrying(path, O_WRONLY | O_CREAT | flags);
    if (fd < 0) return Error(errno, what, path);
    return std::make_unique<HostWritableFile>(path, fd);
  }
};

}  // namespace

std::unique_ptr<FileSystem> NewHostFileSystem() { return std::make_unique<HostFileSystem>(); }

}  // namespace millrace
