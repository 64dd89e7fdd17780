#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/base/mutex.h"

namespace millrace {
namespace {

// What one file holds; shared by its name and by those who have it open, as an inode is.
struct Content {
  Mutex mutex;
  std::string bytes ABSL_GUARDED_BY(mutex);
};

class MemoryWritableFile final : public WritableFile {
 public:
  MemoryWritableFile(std::string path, std::shared_ptr<Content> content)
      : path_(std::move(path)), content_(std::move(content)) {}
  ~MemoryWritableFile() override { Close().IgnoreError(); }

  // Kept back until Flush as on the host, so that who forgets it sees what it does.
  Status Append(absl::string_view bytes) override {
    if (content_ == nullptr) return IsClosed();
    buffer_.append(bytes.data(), bytes.size());
    return Status();
  }

  Status Flush() override {
    if (content_ == nullptr) return IsClosed();
    MutexLock lock(content_->mutex);
    content_->bytes += buffer_;
    buffer_.clear();
    return Status();
  }

  Status Sync() override { return Flush(); }

  Status Close() override {
    if (content_ != nullptr) Flush().IgnoreError();  // cannot fail here
    content_ = nullptr;
    return Status();
  }

 private:
  Status IsClosed() const { return FailedPrecondition("cannot write ", path_, ": it is closed"); }

  const std::string path_;
  std::shared_ptr<Content> content_;  // null once closed
  std::string buffer_;
};

class MemoryReadableFile final : public ReadableFile {
 public:
  MemoryReadableFile(std::string path, std::shared_ptr<Content> content)
      : path_(std::move(path)), content_(std::move(content)) {}

  uint64_t size() const override {
    MutexLock lock(content_->mutex);
    return content_->bytes.size();
  }

  Status Read(uint64_t offset, uint64_t length, char* to) const override {
    if (length == 0) return Status();
    MutexLock lock(content_->mutex);
    const uint64_t size = content_->bytes.size();
    if (offset > size || length > size - offset) {
      return OutOfRange("cannot read ", length, " bytes at offset ", offset, " of ", path_,
                        ", which has ", size, " bytes");
    }
    std::memcpy(to, content_->bytes.data() + offset, length);
    return Status();
  }

 private:
  const std::string path_;
  const std::shared_ptr<Content> content_;
};

// "/a//b/./c/" and "/a/b/c" are one path.
std::string Normal(absl::string_view path) {
  std::vector<absl::string_view> parts;
  for (const absl::string_view part : absl::StrSplit(path, '/', absl::SkipEmpty())) {
    if (part != ".") parts.push_back(part);
  }
  return StrCat(path.substr(0, 1) == "/" ? "/" : "", absl::StrJoin(parts, "/"));
}

// The folder of a normal path: "/" of "/a", "" (the current folder) of "a".
std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return "";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// The start of every path inside `folder`.
std::string PrefixOf(const std::string& folder) {
  return folder.empty() || folder == "/" ? folder : folder + "/";
}

bool StartsWith(absl::string_view text, absl::string_view start) {
  return text.substr(0, start.size()) == start;
}

// Errors as the host's: same codes, like messages.
class MemoryFileSystem final : public FileSystem {
 public:
  StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    MR_ASSIGN_OR_RETURN(std::shared_ptr<Content> content, FindOrMake(path, "create "));
    MutexLock lock(content->mutex);
    content->bytes.clear();
    return std::make_unique<MemoryWritableFile>(path, content);
  }

  StatusOr<std::unique_ptr<WritableFile>> OpenForAppend(const std::string& path) override {
    MR_ASSIGN_OR_RETURN(std::shared_ptr<Content> content, FindOrMake(path, "append to "));
    return std::make_unique<MemoryWritableFile>(path, std::move(content));
  }

  StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    MutexLock lock(mutex_);
    const auto entry = entries_.find(Normal(path));
    if (entry == entries_.end()) return NotFound("cannot open ", path, ": there is no such file");
    if (entry->second == nullptr) {
      return FailedPrecondition("cannot open ", path, ": it is a folder");
    }
    return std::make_unique<MemoryReadableFile>(path, entry->second);
  }

  bool Exists(const std::string& path) override {
    MutexLock lock(mutex_);
    return entries_.contains(Normal(path));
  }

  Status CreateFolder(const std::string& path) override {
    MutexLock lock(mutex_);
    for (std::string folder = Normal(path); !IsFolder(folder); folder = ParentOf(folder)) {
      if (entries_.contains(folder)) {
        return FailedPrecondition("cannot create the folder ", path, ": ", folder, " is a file");
      }
    }
    for (std::string folder = Normal(path); !IsFolder(folder); folder = ParentOf(folder)) {
      entries_[folder] = nullptr;
    }
    return Status();
  }

  StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    MutexLock lock(mutex_);
    const std::string normal = Normal(folder);
    const auto entry = entries_.find(normal);
    if (entry == entries_.end()) {
      return NotFound("cannot list the folder ", folder, ": there is no such folder");
    }
    if (entry->second != nullptr) {
      return FailedPrecondition("cannot list the folder ", folder, ": it is a file");
    }
    std::vector<std::string> names;
    const std::string prefix = PrefixOf(normal);
    for (auto inside = entries_.upper_bound(prefix);
         inside != entries_.end() && StartsWith(inside->first, prefix); ++inside) {
      const std::string& path = inside->first;
      if (path != "/" && ParentOf(path) == normal) names.push_back(path.substr(prefix.size()));
    }
    return names;
  }

  Status Rename(const std::string& from, const std::string& to) override;
  Status Remove(const std::string& path) override;

 private:
  StatusOr<std::shared_ptr<Content>> FindOrMake(const std::string& path, absl::string_view what);

  bool IsFolder(const std::string& normal) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto entry = entries_.find(normal);
    return entry != entries_.end() && entry->second == nullptr;
  }
  bool HasEntries(const std::string& folder) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto first = entries_.upper_bound(PrefixOf(folder));
    return first != entries_.end() && StartsWith(first->first, PrefixOf(folder));
  }

  Mutex mutex_;
  // By normal path; null for a folder.
  std::map<std::string, std::shared_ptr<Content>> entries_ ABSL_GUARDED_BY(mutex_) = {
      {"", nullptr}, {"/", nullptr}};
};

StatusOr<std::shared_ptr<Content>> MemoryFileSystem::FindOrMake(const std::string& path,
                                                                absl::string_view what) {
  MutexLock lock(mutex_);
  const std::string normal = Normal(path);
  const auto entry = entries_.find(normal);
  if (entry != entries_.end()) {
    if (entry->second != nullptr) return entry->second;
    return FailedPrecondition("cannot ", what, path, ": it is a folder");
  }
  const std::string folder = ParentOf(normal);
  if (!IsFolder(folder)) {
    if (entries_.contains(folder)) {
      return FailedPrecondition("cannot ", what, path, ": ", folder, " is a file");
    }
    return NotFound("cannot ", what, path, ": there is no folder ", folder);
  }
  return entries_[normal] = std::make_shared<Content>();
}

Status MemoryFileSystem::Rename(const std::string& from, const std::string& to) {
  const std::string old_path = Normal(from);
  const std::string new_path = Normal(to);
  if (ParentOf(old_path) != ParentOf(new_path)) {
    return InvalidArgument("cannot rename ", from, " to ", to, ": they are in two folders");
  }
  MutexLock lock(mutex_);
  if (!entries_.contains(old_path)) {
    return NotFound("cannot rename ", from, " to ", to, ": there is no such file");
  }
  if (old_path == new_path) return Status();
  if (entries_.contains(new_path)) {
    if (IsFolder(old_path) != IsFolder(new_path)) {
      return FailedPrecondition("cannot rename ", from, " to ", to, ": one of them is a folder");
    }
    if (IsFolder(new_path) && HasEntries(new_path)) {
      return FailedPrecondition("cannot rename ", from, " to ", to, ": that folder is not empty");
    }
    entries_.erase(new_path);
  }
  if (IsFolder(old_path)) {
    const std::string prefix = PrefixOf(old_path);
    for (auto entry = entries_.upper_bound(prefix);
         entry != entries_.end() && StartsWith(entry->first, prefix);) {
      auto node = entries_.extract(entry++);
      node.key() = StrCat(new_path, "/", node.key().substr(prefix.size()));
      entries_.insert(std::move(node));
    }
  }
  auto node = entries_.extract(old_path);
  node.key() = new_path;
  entries_.insert(std::move(node));
  return Status();
}

Status MemoryFileSystem::Remove(const std::string& path) {
  MutexLock lock(mutex_);
  const std::string normal = Normal(path);
  if (normal.empty() || normal == "/") {
    return FailedPrecondition("cannot remove ", path, ": it is the root");
  }
  if (!entries_.contains(normal)) {
    return NotFound("cannot remove ", path, ": there is no such file");
  }
  if (IsFolder(normal) && HasEntries(normal)) {
    return FailedPrecondition("cannot remove ", path, ": the folder is not empty");
  }
  entries_.erase(normal);
  return Status();
}

}  // namespace

std::unique_ptr<FileSystem> NewMemoryFileSystem() { return std::make_unique<MemoryFileSystem>(); }

}  // namespace millrace
