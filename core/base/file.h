#ifndef CORE_BASE_FILE_H_
#define CORE_BASE_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace millrace {

// A file being written from its start to its end.
class WritableFile {
 public:
  virtual ~WritableFile() = default;  // closes
  virtual Status Append(absl::string_view bytes) = 0;
  // Hands what was appended to the operating system.
  virtual Status Flush() = 0;
  // Flush, and wait until it is on the device.
  virtual Status Sync() = 0;
  virtual Status Close() = 0;
};

// A file being read at any place. Thread-safe.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual uint64_t size() const = 0;
  // Reads exactly `length` bytes; OutOfRange beyond the end.
  virtual Status Read(uint64_t offset, uint64_t length, char* to) const = 0;
};

// Thread-safe. Errors name the path.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) = 0;
  virtual StatusOr<std::unique_ptr<WritableFile>> OpenForAppend(const std::string& path) = 0;
  virtual StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) = 0;
  virtual bool Exists(const std::string& path) = 0;
  // With its parents; OK if it exists.
  virtual Status CreateFolder(const std::string& path) = 0;
  // Names, not paths, sorted.
  virtual StatusOr<std::vector<std::string>> List(const std::string& folder) = 0;
  // Atomic; replaces `to`; both in one folder. Syncs the folder.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  virtual Status Remove(const std::string& path) = 0;
};

// The operating system's files.
std::unique_ptr<FileSystem> NewHostFileSystem();
// Files in memory, for tests.
std::unique_ptr<FileSystem> NewMemoryFileSystem();

StatusOr<std::string> ReadFile(FileSystem& files, const std::string& path);
// Complete or absent: written under a temporary name, synced, renamed.
Status WriteFile(FileSystem& files, const std::string& path, absl::string_view bytes);

// "a/b"; `name` alone if `folder` is empty.
std::string JoinPath(absl::string_view folder, absl::string_view name);
// The part before the last '/', "" if there is none.
std::string FolderOf(absl::string_view path);

}  // namespace millrace

#endif  // CORE_BASE_FILE_H_
