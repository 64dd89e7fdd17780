#include "core/base/file.h"

#include <unistd.h>

#include <atomic>
#include <exception>
#include <utility>

namespace millrace {
namespace {

Status WriteAndSync(FileSystem& files, const std::string& path, absl::string_view bytes) {
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, files.Create(path));
  MR_RETURN_IF_ERROR(file->Append(bytes));
  MR_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

}  // namespace

StatusOr<std::string> ReadFile(FileSystem& files, const std::string& path) {
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, files.Open(path));
  std::string bytes;
  try {
    bytes.resize(file->size());
  } catch (const std::exception&) {  // a sparse file may claim any size
    return ResourceExhausted("cannot read ", path, ": ", file->size(),
                             " bytes do not fit in memory");
  }
  MR_RETURN_IF_ERROR(file->Read(0, bytes.size(), bytes.data()));
  return bytes;
}

Status WriteFile(FileSystem& files, const std::string& path, absl::string_view bytes) {
  // Writers of one path at one time, in this process or another, must not share a file.
  static std::atomic<uint64_t> counter{0};
  const std::string temporary = StrCat(path, ".tmp-", getpid(), "-", ++counter);
  Status status = WriteAndSync(files, temporary, bytes);
  if (status.ok()) status = files.Rename(temporary, path);
  if (!status.ok()) files.Remove(temporary).IgnoreError();  // it may not even exist
  return status;
}

std::string JoinPath(absl::string_view folder, absl::string_view name) {
  if (folder.empty()) return std::string(name);
  if (folder.back() == '/') return StrCat(folder, name);
  return StrCat(folder, "/", name);
}

std::string FolderOf(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? "" : std::string(path.substr(0, slash));
}

}  // namespace millrace
