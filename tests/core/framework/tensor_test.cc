#include "core/framework/tensor.h"

#include <cstdint>
#include <string>
#include <vector>

#include "core/framework/resource.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CountedResource final : public Resource {
 public:
  explicit CountedResource(int* live) : live_(live) { ++*live_; }
  ~CountedResource() override { --*live_; }
  std::string DebugString() const override { return "counted"; }

 private:
  int* live_;
};

// Refuses more than `limit` bytes at once.
class SmallAllocator final : public Allocator {
 public:
  explicit SmallAllocator(size_t limit) : limit_(limit) {}
  void* Allocate(size_t bytes) override {
    return bytes > limit_ ? nullptr : HostAllocator().Allocate(bytes);
  }
  void Deallocate(void* memory, size_t bytes) override {
    HostAllocator().Deallocate(memory, bytes);
    ++deallocations;
  }
  AllocatorStats stats() const override { return {.limit = static_cast<int64_t>(limit_)}; }
  int deallocations = 0;

 private:
  const size_t limit_;
};

std::vector<std::string> StringsOf(const Tensor& tensor) {
  std::vector<std::string> strings;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) strings.emplace_back(tensor.string(i));
  return strings;
}

TEST(TensorTest, DefaultIsInvalid) {
  const Tensor tensor;
  EXPECT_FALSE(tensor.valid());
  EXPECT_EQ(tensor.byte_size(), 0U);
  EXPECT_EQ(tensor.ToString(), "invalid tensor");
  EXPECT_FALSE(tensor.Slice(0, 1).valid());
  EXPECT_FALSE(tensor.Reshaped(Shape{1}).valid());
}

TEST(TensorTest, OwnMemoryIsAlignedAndCountedExactly) {
  const AllocatorStats before = HostAllocator().stats();
  {
    const Tensor tensor = Tensor::Allocate(HostAllocator(), DType::kFloat, Shape{3, 5}).value();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.raw_data()) % Allocator::kAlignment, 0U);
    EXPECT_EQ(tensor.byte_size(), 60U);
    EXPECT_EQ(HostAllocator().stats().bytes_in_use, before.bytes_in_use + 64);
  }
  EXPECT_EQ(HostAllocator().stats().bytes_in_use, before.bytes_in_use);
}

TEST(TensorTest, AllocateSaysWhatIsMissing) {
  SmallAllocator allocator(100);
  const Status status = Tensor::Allocate(allocator, DType::kDouble, Shape{10, 10}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("double[10,10] (800 bytes)"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("of 100 allowed"));
  for (DType dtype : {DType::kString, DType::kResource, DType::kInvalid}) {
    EXPECT_EQ(Tensor::Allocate(allocator, dtype, Shape()).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_FALSE(Tensor::Zeros(DType::kFloat, Shape{int64_t{1} << 50}).valid());
}

TEST(TensorTest, GivesMemoryBackOnceAfterTheLastUse) {
  SmallAllocator allocator(1000);
  Tensor view;
  {
    const Tensor tensor = Tensor::Allocate(allocator, DType::kInt32, Shape{4, 2}).value();
    const Tensor copy = tensor;
    EXPECT_TRUE(copy.SharesBufferWith(tensor));
    view = copy.Slice(1, 2);
  }
  EXPECT_EQ(allocator.deallocations, 0);
  view = Tensor();
  EXPECT_EQ(allocator.deallocations, 1);
}

TEST(TensorTest, OfTakesValuesAndFillsWithZeros) {
  EXPECT_THAT(Tensor::Of<int32_t>(Shape{3}, {1, 2, 3}).span<int32_t>(), ElementsAre(1, 2, 3));
  EXPECT_THAT(Tensor::Of<float>(Shape{3}, {1.5F}).span<float>(), ElementsAre(1.5F, 0, 0));
  EXPECT_THAT(Tensor::Of<float>(Shape{1}, {1, 2}).span<float>(), ElementsAre(1));
  EXPECT_THAT(Tensor::Scalar<bool>(true).span<bool>(), ElementsAre(true));
  EXPECT_EQ(Tensor::Zeros(DType::kInt64, Shape{0, 4}).byte_size(), 0U);
  EXPECT_FALSE(Tensor::Zeros(DType::kResource, Shape()).valid());
}

TEST(TensorTest, SlicesAndReshapesAreViews) {
  const Tensor tensor = Tensor::Of<int32_t>(Shape{3, 2}, {0, 1, 2, 3, 4, 5});
  const Tensor rows = tensor.Slice(1, 3);
  EXPECT_EQ(rows.shape(), (Shape{2, 2}));
  EXPECT_THAT(rows.span<int32_t>(), ElementsAre(2, 3, 4, 5));
  EXPECT_TRUE(rows.SharesBufferWith(tensor));
  EXPECT_THAT(rows.Slice(1, 2).span<int32_t>(), ElementsAre(4, 5));
  EXPECT_EQ(tensor.Slice(2, 2).num_elements(), 0);
  EXPECT_EQ(tensor.Slice(-5, 99).shape(), tensor.shape());  // clamped
  EXPECT_EQ(tensor.Slice(9, 1).num_elements(), 0);
  EXPECT_TRUE(Tensor::Scalar<float>(1).Slice(0, 1).valid());

  const Tensor flat = tensor.Reshaped(Shape{6});
  EXPECT_TRUE(flat.SharesBufferWith(tensor));
  EXPECT_EQ(flat.shape(), Shape{6});
  EXPECT_FALSE(tensor.Reshaped(Shape{5}).valid());
}

TEST(TensorTest, OwnsWholeBufferOnlyAlone) {
  Tensor tensor = Tensor::Of<int32_t>(Shape{2, 2}, {0, 1, 2, 3});
  EXPECT_TRUE(tensor.OwnsWholeBuffer());
  {
    const Tensor copy = tensor;
    EXPECT_FALSE(tensor.OwnsWholeBuffer());
  }
  EXPECT_TRUE(tensor.OwnsWholeBuffer());
  tensor = tensor.Slice(0, 1);
  EXPECT_FALSE(tensor.OwnsWholeBuffer());  // alone, but the buffer is larger
  EXPECT_FALSE(Tensor::Strings(Shape(), {"a"}).OwnsWholeBuffer());
  EXPECT_FALSE(Tensor().OwnsWholeBuffer());
  EXPECT_TRUE(Tensor::Zeros(DType::kFloat, Shape{0}).OwnsWholeBuffer());
}

TEST(TensorTest, MovesLeaveAnInvalidTensor) {
  Tensor a = Tensor::Scalar<int64_t>(7);
  const Tensor b = std::move(a);
  EXPECT_FALSE(a.valid());  // NOLINT: what a move leaves is promised
  EXPECT_EQ(b.span<int64_t>()[0], 7);
  Tensor c = b;
  const Tensor& alias = c;
  c = alias;
  EXPECT_EQ(c.span<int64_t>()[0], 7);
}

struct AdoptCase {
  const char* what;
  DType dtype;
  Shape shape;
  size_t offset;  // of the data in aligned memory
  size_t size;
  bool ok;
};

TEST(TensorTest, AdoptChecksAndReleasesOnce) {
  const AdoptCase cases[] = {
      {"exact", DType::kFloat, Shape{4}, 0, 16, true},
      {"larger", DType::kFloat, Shape{4}, 0, 64, true},
      {"element alignment", DType::kFloat, Shape{4}, 4, 16, true},
      {"not aligned", DType::kFloat, Shape{4}, 2, 16, false},
      {"too small", DType::kFloat, Shape{4}, 0, 15, false},
      {"bytes need no alignment", DType::kUint8, Shape{4}, 3, 4, true},
      {"empty", DType::kDouble, Shape{0}, 0, 0, true},
      {"no strings, zero offset", DType::kString, Shape{0}, 1, 8, true},
      {"two empty strings", DType::kString, Shape{2}, 0, 24, true},
      {"offsets cut off", DType::kString, Shape{2}, 0, 23, false},
      {"resource", DType::kResource, Shape(), 0, 64, false},
      {"invalid", DType::kInvalid, Shape(), 0, 64, false},
  };
  for (const AdoptCase& c : cases) {
    alignas(64) char memory[128] = {};
    int released = 0;
    {
      const Tensor tensor =
          Tensor::Adopt(c.dtype, c.shape, memory + c.offset, c.size, [&] { ++released; });
      EXPECT_EQ(tensor.valid(), c.ok) << c.what;
      const Tensor copy = tensor;
      EXPECT_EQ(released, c.ok ? 0 : 1) << c.what;
    }
    EXPECT_EQ(released, 1) << c.what;
  }
  EXPECT_FALSE(Tensor::Adopt(DType::kFloat, Shape{1}, nullptr, 4, nullptr).valid());
}

struct OffsetCase {
  std::vector<uint64_t> offsets;
  size_t characters;
  bool ok;
};

TEST(TensorTest, AdoptedStringsCannotPointOutside) {
  constexpr uint64_t kHuge = ~uint64_t{0};
  const OffsetCase cases[] = {
      {{0, 2, 3}, 3, true},      {{0, 2, 3}, 4, true},  {{0, 2, 3}, 2, false},
      {{1, 2, 3}, 3, false},     {{0, 3, 2}, 3, false}, {{0, kHuge, 3}, 3, false},
      {{0, 2, kHuge}, 3, false}, {{0, 0, 0}, 0, true},
  };
  for (const OffsetCase& c : cases) {
    std::vector<char> memory(c.offsets.size() * 8 + c.characters, 'x');
    std::memcpy(memory.data(), c.offsets.data(), c.offsets.size() * 8);
    const Tensor tensor =
        Tensor::Adopt(DType::kString, Shape{2}, memory.data(), memory.size(), nullptr);
    EXPECT_EQ(tensor.valid(), c.ok) << testing::PrintToString(c.offsets);
    if (!c.ok) continue;
    EXPECT_EQ(tensor.string(1).size(), c.offsets[2] - c.offsets[1]);
  }
}

TEST(TensorTest, StringsAreOneFlatBuffer) {
  const std::vector<std::string> values = {"ab", "", std::string("\0c", 2), "d"};
  const Tensor tensor = Tensor::Strings(Shape{2, 2}, values);
  EXPECT_EQ(StringsOf(tensor), values);
  EXPECT_EQ(tensor.byte_size(), 5 * 8 + 5U);
  EXPECT_EQ(tensor.string(4), "");
  EXPECT_EQ(tensor.string(-1), "");
  EXPECT_EQ(Tensor::Scalar<float>(1).string(0), "");
  EXPECT_EQ(StringsOf(tensor.Slice(1, 2)), (std::vector<std::string>{values[2], values[3]}));
  EXPECT_EQ(StringsOf(tensor.Slice(0, 2)), values);
  EXPECT_EQ(StringsOf(tensor.Copy(HostAllocator()).value()), values);
  EXPECT_EQ(StringsOf(Tensor::Strings(Shape{2}, {"only"})), (std::vector<std::string>{"only", ""}));
  EXPECT_EQ(Tensor::Zeros(DType::kString, Shape{3}).byte_size(), 32U);

  // The buffer as it is can be adopted elsewhere.
  std::vector<char> bytes(tensor.byte_size());
  std::memcpy(bytes.data(), tensor.raw_data(), bytes.size());
  const Tensor again =
      Tensor::Adopt(DType::kString, Shape{2, 2}, bytes.data(), bytes.size(), nullptr);
  EXPECT_EQ(StringsOf(again), values);
}

TEST(TensorTest, ResourcesLiveAsLongAsTheirTensors) {
  int live = 0;
  {
    Tensor tensor = Tensor::OfResource(std::make_shared<CountedResource>(&live));
    const Tensor copy = tensor;
    tensor = Tensor();
    EXPECT_EQ(live, 1);
    EXPECT_EQ(copy.resource()->DebugString(), "counted");
    EXPECT_EQ(copy.ToString(), "resource[] = counted");
    EXPECT_EQ(copy.Copy(HostAllocator())->resource(), copy.resource());
    EXPECT_EQ(copy.byte_size(), 0U);
  }
  EXPECT_EQ(live, 0);
  EXPECT_EQ(Tensor::Scalar<float>(1).resource(), nullptr);
}

TEST(TensorTest, CopyIsDeep) {
  Tensor tensor = Tensor::Of<float>(Shape{2}, {1, 2});
  const Tensor copy = tensor.Copy(HostAllocator()).value();
  tensor.mutable_data<float>()[0] = 9;
  EXPECT_THAT(copy.span<float>(), ElementsAre(1, 2));
  EXPECT_FALSE(copy.SharesBufferWith(tensor));
  SmallAllocator none(0);
  EXPECT_EQ(tensor.Copy(none).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(TensorTest, ToStringShowsTheFirstValues) {
  const std::pair<Tensor, std::string> cases[] = {
      {Tensor::Of<float>(Shape{2, 2}, {1, 2.5F, -3, 4}), "float[2,2] = 1 2.5 -3 4"},
      {Tensor::Of<int8_t>(Shape{1}, {-8}), "int8[1] = -8"},
      {Tensor::Of<uint8_t>(Shape{1}, {200}), "uint8[1] = 200"},
      {Tensor::Of<bool>(Shape{2}, {true, false}), "bool[2] = true false"},
      {Tensor::Zeros(DType::kInt64, Shape{9}), "int64[9] = 0 0 0 0 0 0 ..."},
      {Tensor::Zeros(DType::kFloat, Shape{0}), "float[0] ="},
      {Tensor::Strings(Shape{2}, {"a\"b", std::string(50, 'x')}),
       "string[2] = \"a\\\"b\" \"" + std::string(40, 'x') + "\"..."},
  };
  for (const auto& [tensor, text] : cases) EXPECT_EQ(tensor.ToString(), text);

  const std::pair<uint16_t, const char*> halves[] = {
      {0x3c00, "1"}, {0xc000, "-2"}, {0x7c00, "inf"}, {0x0001, "5.96046e-08"}, {0x8000, "-0"}};
  for (const auto& [bits, text] : halves) {
    Tensor half = Tensor::Zeros(DType::kHalf, Shape());
    half.mutable_data<uint16_t>()[0] = bits;
    EXPECT_EQ(half.ToString(), StrCat("half[] = ", text));
  }
  Tensor bfloat16 = Tensor::Zeros(DType::kBfloat16, Shape());
  bfloat16.mutable_data<uint16_t>()[0] = 0x4049;
  EXPECT_EQ(bfloat16.ToString(), "bfloat16[] = 3.14062");
}

}  // namespace
}  // namespace millrace
