#ifndef CORE_GRAPH_ATTR_TEXT_H_
#define CORE_GRAPH_ATTR_TEXT_H_

#include <string>

#include "core/framework/attr.h"
#include "core/graph/text_cursor.h"

// Values of attributes in the text form of a graph. Unlike AttrValue::ToString, which is for people
// and leaves out what is long, each value reads back as it was:
//
//   7   0.5   true   "a\nb"   float   [2,?]   ?   [1, 2]   loss{scale=2.0}
//   tensor(float[2]: 1 2)   tensor(float[784,10]: base64 AACAPwAA...)
namespace millrace {

// With `with_kind`, what could be taken for another kind has its own before it, as in
// "shape:[2,3]": for annotations, whose kind nothing else tells.
std::string AttrToText(const AttrValue& value, bool with_kind);

// Takes a value of `kind`, spelled as in op signatures; of the kind that the text itself says if
// that is "".
StatusOr<AttrValue> AttrFromText(TextCursor& cursor, absl::string_view kind);

// Names that are no words are quoted.
std::string AttrNameToText(absl::string_view name);
StatusOr<std::string> AttrNameFromText(TextCursor& cursor);

// "tensor(float[2]: 1 2)". Values are written out if there are few and their digits say all.
std::string TensorToText(const Tensor& tensor);
// REQUIRES: "tensor(" has been taken.
StatusOr<Tensor> TensorFromText(TextCursor& cursor);

}  // namespace millrace

#endif  // CORE_GRAPH_ATTR_TEXT_H_
