#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/file.h"
#include "tests/golden/golden_case.h"
#include "tests/testing/gzip.h"

namespace millrace::golden {
namespace {

// Of the runfiles, in which tests start.
constexpr char kFolder[] = "tests/golden";

// The lines of a file in the folder that are not empty and no comments.
StatusOr<std::vector<std::string>> Lines(const std::string& name) {
  MR_ASSIGN_OR_RETURN(const std::string text,
                      ReadFile(*NewHostFileSystem(), JoinPath(kFolder, name)));
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!line.empty() && line[0] != '#') lines.emplace_back(line);
  }
  return lines;
}

}  // namespace

std::vector<std::string> FamilyNames() {
  const StatusOr<std::vector<std::string>> files =
      NewHostFileSystem()->List(JoinPath(kFolder, "data"));
  std::vector<std::string> names;
  if (!files.ok()) return names;
  for (const std::string& file : *files) {
    absl::string_view name = file;
    if (absl::ConsumeSuffix(&name, ".gz")) names.emplace_back(name);
  }
  return names;
}

StatusOr<Family> ReadFamily(const std::string& name) {
  MR_ASSIGN_OR_RETURN(
      const std::string bytes,
      ReadFile(*NewHostFileSystem(), JoinPath(kFolder, StrCat("data/", name, ".gz"))));
  Family family;
  if (!family.ParseFromString(testing::Gunzip(bytes))) {
    return DataLoss("tests/golden/data/", name, ".gz is no Family of golden.proto");
  }
  return family;
}

StatusOr<std::map<std::string, std::string>> Differences() {
  MR_ASSIGN_OR_RETURN(const std::vector<std::string> lines, Lines("differences.txt"));
  std::map<std::string, std::string> differences;
  for (const std::string& line : lines) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(": ", 1));
    if (parts.second.empty()) return InvalidArgument("no reason in: ", line);
    if (!differences.insert(parts).second) return InvalidArgument("twice: ", parts.first);
  }
  return differences;
}

StatusOr<std::map<std::string, Counts>> ListedOps() {
  MR_ASSIGN_OR_RETURN(const std::vector<std::string> lines, Lines("ops.txt"));
  std::map<std::string, Counts> ops;
  for (const std::string& line : lines) {
    const std::vector<std::string> parts = absl::StrSplit(line, ' ');
    Counts counts;
    if (parts.size() != 3 || !absl::SimpleAtoi(parts[1], &counts.cases) ||
        !absl::SimpleAtoi(parts[2], &counts.gradients)) {
      return InvalidArgument("not 'OP CASES GRADIENTS': ", line);
    }
    ops[parts[0]] = counts;
  }
  return ops;
}

}  // namespace millrace::golden
