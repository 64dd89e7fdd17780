// One use of each library of Debian's that no other test of the build set-up touches.
#include <zlib.h>

#include <cstddef>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "hwy/highway.h"
#include "nlohmann/json.hpp"
#include "oneapi/dnnl/dnnl.hpp"

namespace {

TEST(SystemTest, OneDnnMultiplies) {
  using Memory = dnnl::memory;
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  std::vector<float> a = {1, 2, 3, 4}, b = {5, 6, 7, 8}, c(4);
  const Memory::desc desc({2, 2}, Memory::data_type::f32, Memory::format_tag::ab);
  const dnnl::matmul::primitive_desc matmul(dnnl::matmul::desc(desc, desc, desc), engine);
  dnnl::matmul(matmul).execute(stream, {{DNNL_ARG_SRC, Memory(desc, engine, a.data())},
                                        {DNNL_ARG_WEIGHTS, Memory(desc, engine, b.data())},
                                        {DNNL_ARG_DST, Memory(desc, engine, c.data())}});
  stream.wait();
  EXPECT_EQ(c, (std::vector<float>{19, 22, 43, 50}));
}

TEST(SystemTest, HighwayAddsAVector) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> tag;
  const auto sum = hn::Add(hn::Set(tag, 1.0F), hn::Set(tag, 2.0F));
  EXPECT_EQ(hn::GetLane(sum), 3.0F);
}

TEST(SystemTest, JsonParses) {
  EXPECT_EQ(nlohmann::json::parse(R"({"steps": [1, 2]})")["steps"][1], 2);
}

TEST(SystemTest, ZlibHasItsCrc) {
  const std::string text = "123456789";
  EXPECT_EQ(crc32(0, reinterpret_cast<const Bytef*>(text.data()), 9), 0xcbf43926U);
}

}  // namespace
