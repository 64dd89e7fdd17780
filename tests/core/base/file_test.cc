#include "core/base/file.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::StatusCode CodeOf(const Status& status) { return status.code(); }
template <typename T>
absl::StatusCode CodeOf(const StatusOr<T>& result) {
  return result.status().code();
}

constexpr absl::StatusCode kOk = absl::StatusCode::kOk;
constexpr absl::StatusCode kNotFound = absl::StatusCode::kNotFound;
constexpr absl::StatusCode kFailedPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr absl::StatusCode kOutOfRange = absl::StatusCode::kOutOfRange;

struct Kind {
  const char* name;
  std::unique_ptr<FileSystem> (*make)();
};

// What both file systems do alike.
class FileSystemTest : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    std::string folder = JoinPath(testing::TempDir(), "file_test_XXXXXX");
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    ASSERT_EQ(files_->CreateFolder(folder_), Status());
  }

  std::string Path(absl::string_view name) const { return JoinPath(folder_, name); }
  std::string Content(absl::string_view name) const {
    const StatusOr<std::string> content = ReadFile(*files_, Path(name));
    return content.ok() ? *content : content.status().ToString();
  }

  const std::unique_ptr<FileSystem> files_ = GetParam().make();
  std::string folder_;
};

TEST_P(FileSystemTest, ReadsWhatWasWritten) {
  std::unique_ptr<WritableFile> out = *files_->Create(Path("a"));
  std::string expected;
  // Small ones, one that fills the buffer, one larger than it.
  for (const size_t size : {0, 1, 10, 65536, 3, 200000, 7}) {
    const std::string bytes(size, static_cast<char>('a' + size % 26));
    ASSERT_EQ(out->Append(bytes), Status());
    expected += bytes;
  }
  ASSERT_EQ(out->Close(), Status());
  ASSERT_EQ(out->Close(), Status()) << "again does nothing";
  EXPECT_EQ(Content("a"), expected);

  const std::unique_ptr<ReadableFile> in = *files_->Open(Path("a"));
  EXPECT_EQ(in->size(), expected.size());
  std::string middle(70000, '\0');
  ASSERT_EQ(in->Read(5, middle.size(), middle.data()), Status());
  EXPECT_EQ(middle, expected.substr(5, middle.size()));
}

TEST_P(FileSystemTest, ReadIsExactOrOutOfRange) {
  ASSERT_EQ(WriteFile(*files_, Path("a"), "0123456789"), Status());
  const std::unique_ptr<ReadableFile> in = *files_->Open(Path("a"));
  char bytes[16];
  EXPECT_EQ(CodeOf(in->Read(10, 0, bytes)), kOk);
  EXPECT_EQ(CodeOf(in->Read(0, 11, bytes)), kOutOfRange);
  EXPECT_EQ(CodeOf(in->Read(10, 1, bytes)), kOutOfRange);
  EXPECT_EQ(CodeOf(in->Read(UINT64_MAX, 2, bytes)), kOutOfRange);
  EXPECT_EQ(CodeOf(in->Read(2, UINT64_MAX, bytes)), kOutOfRange);
  EXPECT_EQ(in->Read(8, 3, bytes),
            OutOfRange("cannot read 3 bytes at offset 8 of ", Path("a"), ", which has 10 bytes"));
}

TEST_P(FileSystemTest, AppendsAreSeenByOthersAfterFlush) {
  const std::unique_ptr<WritableFile> out = *files_->Create(Path("a"));
  ASSERT_EQ(out->Append("one"), Status());
  EXPECT_EQ(Content("a"), "");
  ASSERT_EQ(out->Flush(), Status());
  EXPECT_EQ(Content("a"), "one");
  const std::unique_ptr<ReadableFile> in = *files_->Open(Path("a"));
  ASSERT_EQ(out->Append("two"), Status());
  ASSERT_EQ(out->Sync(), Status());
  EXPECT_EQ(in->size(), 6u) << "an open file follows its growth";
}

TEST_P(FileSystemTest, TheDestructorCloses) {
  { ASSERT_EQ((*files_->Create(Path("a")))->Append("kept"), Status()); }
  EXPECT_EQ(Content("a"), "kept");
}

TEST_P(FileSystemTest, AClosedFileTakesNoMore) {
  const std::unique_ptr<WritableFile> out = *files_->Create(Path("a"));
  ASSERT_EQ(out->Close(), Status());
  EXPECT_EQ(CodeOf(out->Append("x")), kFailedPrecondition);
  EXPECT_EQ(CodeOf(out->Flush()), kFailedPrecondition);
  EXPECT_EQ(CodeOf(out->Sync()), kFailedPrecondition);
}

TEST_P(FileSystemTest, CreateEmptiesAndOpenForAppendKeeps) {
  ASSERT_EQ(WriteFile(*files_, Path("a"), "old"), Status());
  ASSERT_EQ((*files_->OpenForAppend(Path("a")))->Append("+new"), Status());
  EXPECT_EQ(Content("a"), "old+new");
  ASSERT_EQ((*files_->OpenForAppend(Path("b")))->Append("made"), Status());
  EXPECT_EQ(Content("b"), "made");
  ASSERT_EQ(CodeOf(files_->Create(Path("a"))), kOk);
  EXPECT_EQ(Content("a"), "");
}

TEST_P(FileSystemTest, FoldersAreMadeWithTheirParents) {
  EXPECT_EQ(files_->CreateFolder(Path("a/b/c")), Status());
  EXPECT_EQ(files_->CreateFolder(Path("a/b/c/")), Status()) << "it exists";
  EXPECT_TRUE(files_->Exists(Path("a/b/c")));
  ASSERT_EQ(WriteFile(*files_, Path("a/file"), ""), Status());
  EXPECT_EQ(CodeOf(files_->CreateFolder(Path("a/file"))), kFailedPrecondition);
  EXPECT_EQ(CodeOf(files_->CreateFolder(Path("a/file/d"))), kFailedPrecondition);
}

TEST_P(FileSystemTest, ListsTheNamesInAFolderSorted) {
  for (const char* name : {"b", "a.x", "a", "c"}) {
    ASSERT_EQ(WriteFile(*files_, Path(name), name), Status());
  }
  ASSERT_EQ(files_->CreateFolder(Path("a-folder/inner")), Status());
  EXPECT_THAT(*files_->List(folder_), ElementsAre("a", "a-folder", "a.x", "b", "c"));
  EXPECT_THAT(*files_->List(Path("a-folder/")), ElementsAre("inner"));
  EXPECT_THAT(*files_->List(Path("a-folder/inner")), IsEmpty());
  EXPECT_EQ(CodeOf(files_->List(Path("none"))), kNotFound);
  EXPECT_EQ(CodeOf(files_->List(Path("a"))), kFailedPrecondition);
}

TEST_P(FileSystemTest, RenameReplaces) {
  ASSERT_EQ(WriteFile(*files_, Path("from"), "new"), Status());
  ASSERT_EQ(WriteFile(*files_, Path("to"), "old"), Status());
  const std::unique_ptr<ReadableFile> open_before = *files_->Open(Path("to"));
  EXPECT_EQ(files_->Rename(Path("from"), Path("to")), Status());
  EXPECT_EQ(Content("to"), "new");
  EXPECT_FALSE(files_->Exists(Path("from")));
  std::string old(3, '\0');
  EXPECT_EQ(open_before->Read(0, 3, old.data()), Status());
  EXPECT_EQ(old, "old") << "who has it open keeps what it opened";
}

TEST_P(FileSystemTest, RenameMovesAFolderWithAllThatIsInIt) {
  ASSERT_EQ(files_->CreateFolder(Path("from/inner")), Status());
  ASSERT_EQ(files_->CreateFolder(Path("to")), Status());
  ASSERT_EQ(WriteFile(*files_, Path("from/inner/a"), "x"), Status());
  EXPECT_EQ(files_->Rename(Path("from"), Path("to")), Status()) << "an empty one is replaced";
  EXPECT_EQ(Content("to/inner/a"), "x");
  EXPECT_FALSE(files_->Exists(Path("from")));
}

TEST_P(FileSystemTest, RenameRefusesWhatItCannotDoAtomically) {
  ASSERT_EQ(files_->CreateFolder(Path("folder")), Status());
  ASSERT_EQ(WriteFile(*files_, Path("a"), "x"), Status());
  ASSERT_EQ(WriteFile(*files_, Path("folder/b"), "y"), Status());
  ASSERT_EQ(files_->CreateFolder(Path("empty")), Status());
  EXPECT_EQ(CodeOf(files_->Rename(Path("a"), Path("folder/a"))),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(files_->Rename(Path("none"), Path("b"))), kNotFound);
  EXPECT_EQ(CodeOf(files_->Rename(Path("a"), Path("folder"))), kFailedPrecondition);
  EXPECT_EQ(CodeOf(files_->Rename(Path("folder"), Path("a"))), kFailedPrecondition);
  EXPECT_FALSE(files_->Rename(Path("empty"), Path("folder")).ok());
  EXPECT_EQ(Content("a"), "x");
  EXPECT_EQ(Content("folder/b"), "y");
}

TEST_P(FileSystemTest, RemovesFilesAndEmptyFolders) {
  ASSERT_EQ(files_->CreateFolder(Path("folder")), Status());
  ASSERT_EQ(WriteFile(*files_, Path("folder/a"), "x"), Status());
  EXPECT_FALSE(files_->Remove(Path("folder")).ok()) << "it is not empty";
  EXPECT_EQ(files_->Remove(Path("folder/a")), Status());
  EXPECT_EQ(CodeOf(files_->Remove(Path("folder/a"))), kNotFound);
  EXPECT_EQ(files_->Remove(Path("folder")), Status());
  EXPECT_FALSE(files_->Exists(Path("folder")));
}

TEST_P(FileSystemTest, ErrorsNameThePath) {
  EXPECT_EQ(CodeOf(files_->Open(Path("none"))), kNotFound);
  EXPECT_THAT(files_->Open(Path("none")).status().message(), HasSubstr(Path("none")));
  EXPECT_EQ(CodeOf(files_->Create(Path("none/a"))), kNotFound);
  EXPECT_THAT(files_->Create(Path("none/a")).status().message(), HasSubstr(Path("none/a")));
  EXPECT_EQ(CodeOf(files_->Open(folder_)), kFailedPrecondition);
  EXPECT_EQ(CodeOf(files_->Create(folder_)), kFailedPrecondition);
  EXPECT_EQ(CodeOf(files_->OpenForAppend(folder_)), kFailedPrecondition);
}

TEST_P(FileSystemTest, WriteFileReplacesAndLeavesNothingElse) {
  ASSERT_EQ(WriteFile(*files_, Path("a"), "old"), Status());
  ASSERT_EQ(WriteFile(*files_, Path("a"), std::string(100000, 'x')), Status());
  EXPECT_EQ(Content("a"), std::string(100000, 'x'));
  EXPECT_THAT(*files_->List(folder_), ElementsAre("a"));
}

TEST_P(FileSystemTest, AFailedWriteFileLeavesNothingBehind) {
  ASSERT_EQ(files_->CreateFolder(Path("taken/inner")), Status());
  EXPECT_FALSE(WriteFile(*files_, Path("taken"), "x").ok()) << "a folder has that name";
  EXPECT_EQ(CodeOf(WriteFile(*files_, Path("none/a"), "x")), kNotFound);
  EXPECT_THAT(*files_->List(folder_), ElementsAre("taken"));
}

TEST_P(FileSystemTest, WritersOfOnePathDoNotMix) {
  std::vector<std::thread> writers;
  for (char letter = 'a'; letter < 'e'; ++letter) {
    writers.emplace_back([this, letter] {
      for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(WriteFile(*files_, Path("shared"), std::string(5000, letter)), Status());
        const std::string content = Content("shared");
        EXPECT_EQ(content, std::string(5000, content[0]));
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_THAT(*files_->List(folder_), ElementsAre("shared"));
}

INSTANTIATE_TEST_SUITE_P(, FileSystemTest,
                         testing::Values(Kind{"Host", NewHostFileSystem},
                                         Kind{"Memory", NewMemoryFileSystem}),
                         [](const auto& info) { return std::string(info.param.name); });

class HostFileSystemTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = JoinPath(testing::TempDir(), "file_test_XXXXXX");
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }

  const std::unique_ptr<FileSystem> files_ = NewHostFileSystem();
  std::string folder_;
};

TEST_F(HostFileSystemTest, AFullDeviceIsAnErrorThatSaysSoAndStays) {
  StatusOr<std::unique_ptr<WritableFile>> full = files_->Create("/dev/full");
  ASSERT_EQ(full.status(), Status());
  EXPECT_EQ((*full)->Append("x"), Status());
  const Status status = (*full)->Flush();
  EXPECT_EQ(status,
            absl::ResourceExhaustedError("cannot write /dev/full: No space left on device"));
  EXPECT_EQ((*full)->Append("y"), status);
  EXPECT_EQ((*full)->Close(), status);
}

TEST_F(HostFileSystemTest, AWriteThatFailsHalfWayRemovesTheTemporaryAndKeepsTheOld) {
  const std::string path = JoinPath(folder_, "a");
  ASSERT_EQ(WriteFile(*files_, path, "old"), Status());
  signal(SIGXFSZ, SIG_IGN);
  rlimit saved;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &saved), 0);
  rlimit small = saved;
  small.rlim_cur = 100'000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = WriteFile(*files_, path, std::string(300'000, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &saved), 0);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("File too large"));
  EXPECT_EQ(*ReadFile(*files_, path), "old");
  EXPECT_THAT(*files_->List(folder_), ElementsAre("a"));
}

TEST_F(HostFileSystemTest, AnUnwritableFolderStaysAsItWas) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  ASSERT_EQ(chmod(folder_.c_str(), 0555), 0);
  const Status status = WriteFile(*files_, JoinPath(folder_, "a"), "x");
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(*files_->List(folder_), IsEmpty());
}

// Its one file claims to be of any size, as a sparse file can.
class BoundlessFileSystem final : public FileSystem {
 public:
  StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string&) override {
    struct Boundless final : ReadableFile {
      uint64_t size() const override { return UINT64_MAX; }
      Status Read(uint64_t, uint64_t, char*) const override { return Status(); }
    };
    return std::make_unique<Boundless>();
  }
  StatusOr<std::unique_ptr<WritableFile>> Create(const std::string&) override { return No(); }
  StatusOr<std::unique_ptr<WritableFile>> OpenForAppend(const std::string&) override {
    return No();
  }
  bool Exists(const std::string&) override { return true; }
  Status CreateFolder(const std::string&) override { return No(); }
  StatusOr<std::vector<std::string>> List(const std::string&) override { return No(); }
  Status Rename(const std::string&, const std::string&) override { return No(); }
  Status Remove(const std::string&) override { return No(); }

 private:
  static Status No() { return Unimplemented("only to be read"); }
};

TEST(ReadFileTest, AFileTooLargeForMemoryIsAnError) {
  BoundlessFileSystem files;
  EXPECT_EQ(ReadFile(files, "/a").status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(PathTest, JoinPathPutsOneSlash) {
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
  EXPECT_EQ(JoinPath("/", "b"), "/b");
}

TEST(PathTest, FolderOfIsWhatComesBeforeTheLastSlash) {
  EXPECT_EQ(FolderOf("a/b/c"), "a/b");
  EXPECT_EQ(FolderOf("c"), "");
  EXPECT_EQ(FolderOf("/a/b"), "/a");
}

}  // namespace
}  // namespace millrace
