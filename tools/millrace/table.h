#ifndef TOOLS_MILLRACE_TABLE_H_
#define TOOLS_MILLRACE_TABLE_H_

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace millrace {

// Rows of cells, padded so that columns line up; the last column is not padded.
class Table {
 public:
  void Add(std::vector<std::string> row) {
    widths_.resize(std::max(widths_.size(), row.size()));
    for (size_t i = 0; i + 1 < row.size(); ++i) widths_[i] = std::max(widths_[i], row[i].size());
    rows_.push_back(std::move(row));
  }

  // A line a row, indented by two spaces.
  std::string ToString() const {
    std::string text;
    for (const std::vector<std::string>& row : rows_) {
      text += " ";
      for (size_t i = 0; i < row.size(); ++i) {
        text += " " + row[i];
        if (i + 1 < row.size()) text.append(widths_[i] - row[i].size() + 1, ' ');
      }
      text += '\n';
    }
    return text;
  }

 private:
  std::vector<size_t> widths_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace millrace

#endif  // TOOLS_MILLRACE_TABLE_H_
