#include "core/framework/resource.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core/base/thread_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

ThreadPool::Options Threads(int threads) {
  ThreadPool::Options options;
  options.threads = threads;
  return options;
}

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Other final : public Resource {
 public:
  std::string DebugString() const override { return "other"; }
};

Status AddOne(Tensor& value) {
  for (int64_t i = 0; i < value.num_elements(); ++i) ++value.mutable_data<float>()[i];
  return absl::OkStatus();
}

Status Fail(Tensor&) { return Internal("planned"); }

std::shared_ptr<Variable> NewVariable(std::vector<float> values) {
  const Shape shape{static_cast<int64_t>(values.size())};
  auto variable = std::make_shared<Variable>("w", DType::kFloat, PartialShape{-1});
  EXPECT_TRUE(variable->Assign(Tensor::Of<float>(shape, absl::MakeConstSpan(values))).ok());
  return variable;
}

TEST(VariableTest, HasNoValueUntilAssigned) {
  Variable variable("w", DType::kFloat, PartialShape{-1, 2});
  EXPECT_FALSE(variable.IsInitialized());
  EXPECT_EQ(variable.DebugString(), "variable 'w' float[?,2], without a value");
  for (const Status& status :
       {variable.Read().status(), variable.Update(HostAllocator(), 1, AddOne)}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr("variable 'w' has no value"));
  }
  ASSERT_TRUE(variable.Assign(Tensor::Of<float>(Shape{1, 2}, {1, 2})).ok());
  EXPECT_TRUE(variable.IsInitialized());
  EXPECT_THAT(variable.Read()->span<float>(), ElementsAre(1, 2));
}

TEST(VariableTest, AssignRefusesWhatDoesNotFit) {
  Variable variable("w", DType::kFloat, PartialShape{-1, 2});
  for (const Tensor& value : {Tensor::Zeros(DType::kDouble, Shape{1, 2}),
                              Tensor::Zeros(DType::kFloat, Shape{2, 1}), Tensor()}) {
    const Status status = variable.Assign(value);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("'w' is float[?,2], and cannot hold"));
  }
  EXPECT_FALSE(variable.IsInitialized());
}

TEST(VariableTest, UpdatesInPlaceWithoutReaders) {
  const auto variable = NewVariable({1, 2});
  const void* before = variable->Read()->raw_data();
  ASSERT_TRUE(variable->Update(HostAllocator(), 5, AddOne).ok());
  EXPECT_EQ(variable->Read()->raw_data(), before);
  EXPECT_THAT(variable->Read()->span<float>(), ElementsAre(2, 3));
  EXPECT_EQ(variable->last_step(), 5U);
}

TEST(VariableTest, AReaderKeepsItsValue) {
  const auto variable = NewVariable({1, 2});
  const Tensor read = variable->Read().value();
  const Tensor view = read.Slice(0, 1);
  ASSERT_TRUE(variable->Update(HostAllocator(), 1, AddOne).ok());
  EXPECT_THAT(read.span<float>(), ElementsAre(1, 2));
  EXPECT_THAT(view.span<float>(), ElementsAre(1));
  EXPECT_THAT(variable->Read()->span<float>(), ElementsAre(2, 3));
}

TEST(VariableTest, AnAssignedConstantIsNotChanged) {
  const Tensor constant = Tensor::Of<float>(Shape{1}, {7});
  Variable variable("w", DType::kFloat, Shape{1});
  ASSERT_TRUE(variable.Assign(constant).ok());
  ASSERT_TRUE(variable.Update(HostAllocator(), 1, AddOne).ok());
  EXPECT_THAT(constant.span<float>(), ElementsAre(7));
}

TEST(VariableTest, AFailedUpdateIsNotRecorded) {
  const auto variable = NewVariable({1});
  ASSERT_TRUE(variable->Update(HostAllocator(), 3, AddOne).ok());
  EXPECT_EQ(variable->Update(HostAllocator(), 4, Fail).message(), "planned");
  EXPECT_EQ(variable->last_step(), 3U);
  EXPECT_THAT(variable->Read()->span<float>(), ElementsAre(2));
}

TEST(VariableTest, AnUpdateCannotChangeTheType) {
  const auto variable = NewVariable({1});
  const Status status = variable->Update(HostAllocator(), 1, [](Tensor& value) {
    value = Tensor::Scalar<int32_t>(1);
    return absl::OkStatus();
  });
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot hold int32[]"));
  EXPECT_FALSE(variable->IsInitialized());
}

TEST(VariableTest, TornUntilAssignedAgain) {
  const auto variable = NewVariable({1});
  variable->MarkTorn(0);
  EXPECT_FALSE(variable->IsInitialized());
  for (const Status& status :
       {variable->Read().status(), variable->Update(HostAllocator(), 9, AddOne)}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr("'w' was left half updated by step 0"));
  }
  ASSERT_TRUE(variable->Assign(Tensor::Of<float>(Shape{1}, {5})).ok());
  EXPECT_THAT(variable->Read()->span<float>(), ElementsAre(5));
}

TEST(VariableTest, UpdateTogetherKeepsTheGivenOrder) {
  const auto a = NewVariable({1}), b = NewVariable({2}), c = NewVariable({3});
  const Tensor read = b->Read().value();
  const Status status = Variable::UpdateTogether({c.get(), a.get(), b.get()}, HostAllocator(), 7,
                                                 [](absl::Span<Tensor* const> values) {
                                                   EXPECT_EQ(values[0]->data<float>()[0], 3);
                                                   EXPECT_EQ(values[1]->data<float>()[0], 1);
                                                   for (Tensor* value : values)
                                                     value->mutable_data<float>()[0] *= 10;
                                                   return absl::OkStatus();
                                                 });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(a->Read()->span<float>(), ElementsAre(10));
  EXPECT_THAT(b->Read()->span<float>(), ElementsAre(20));
  EXPECT_THAT(c->Read()->span<float>(), ElementsAre(30));
  EXPECT_THAT(read.span<float>(), ElementsAre(2));
  EXPECT_EQ(b->last_step(), 7U);
}

TEST(VariableTest, UpdateTogetherChecksAllFirst) {
  const auto a = NewVariable({1});
  Variable empty("empty", DType::kFloat, PartialShape());
  const auto never = [](absl::Span<Tensor* const>) {
    ADD_FAILURE();
    return absl::OkStatus();
  };
  EXPECT_EQ(Variable::UpdateTogether({a.get(), &empty}, HostAllocator(), 1, never).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      std::string(
          Variable::UpdateTogether({a.get(), a.get()}, HostAllocator(), 1, never).message()),
      HasSubstr("'w' is to be updated twice"));
  EXPECT_FALSE(Variable::UpdateTogether({nullptr}, HostAllocator(), 1, never).ok());
}

TEST(VariableTest, ReadersAndWritersAtOnceNeverSeeHalfAnUpdate) {
  constexpr int64_t kSize = 256;
  constexpr int kTasks = 200;
  const auto a = NewVariable(std::vector<float>(kSize)), b = NewVariable({0});
  ThreadPool pool(Threads(4));
  pool.ParallelFor(kTasks, 1, [&](int64_t task, int64_t) {
    if (task % 2 == 0) {
      Variable* order[] = {a.get(), b.get()};
      if (task % 4 == 0) std::swap(order[0], order[1]);
      const auto both = [](absl::Span<Tensor* const> values) {
        for (Tensor* value : values) MR_RETURN_IF_ERROR(AddOne(*value));
        return absl::OkStatus();
      };
      EXPECT_TRUE(Variable::UpdateTogether(order, HostAllocator(), task, both).ok());
      return;
    }
    const Tensor value = a->Read().value();
    const auto elements = value.span<float>();
    EXPECT_THAT(elements, testing::Each(elements[0]));
  });
  EXPECT_EQ(a->Read()->span<float>()[kSize - 1], kTasks / 2);
  EXPECT_EQ(b->Read()->span<float>()[0], kTasks / 2);
}

TEST(ResourceStoreTest, MakesOnceAndFindsAgain) {
  ResourceStore store;
  const auto first = store.LookupOrCreateVariable("c", "w", DType::kFloat, PartialShape{2});
  const auto second = store.LookupOrCreateVariable("c", "w", DType::kFloat, PartialShape{-1});
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(store.Lookup("c", "w"), *first);
  EXPECT_EQ(store.Lookup("", "w"), nullptr);
  const auto elsewhere = store.LookupOrCreateVariable("", "w", DType::kInt32, PartialShape());
  ASSERT_TRUE(elsewhere.ok());
  EXPECT_THAT(store.List(), ElementsAre("/w", "c/w"));
}

TEST(ResourceStoreTest, RefusesConflicts) {
  ResourceStore store;
  ASSERT_TRUE(store.LookupOrCreateVariable("c", "w", DType::kFloat, PartialShape{2, 3}).ok());
  const std::pair<DType, PartialShape> conflicts[] = {{DType::kDouble, PartialShape{2, 3}},
                                                      {DType::kFloat, PartialShape{3, 2}}};
  for (const auto& [dtype, shape] : conflicts) {
    const Status status = store.LookupOrCreateVariable("c", "w", dtype, shape).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("is float[2,3]"));
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(StrCat("asked for as ", Name(dtype), shape.ToString())));
  }
  const Status kind =
      store.LookupOrCreate<Other>("c", "w", [] { return std::make_shared<Other>(); }).status();
  EXPECT_THAT(std::string(kind.message()), HasSubstr("of another kind: variable 'w'"));
  EXPECT_FALSE(store.LookupOrCreate<Other>("c", "o", [] { return nullptr; }).ok());
}

TEST(ResourceStoreTest, ResetDetachesTheNamedContainers) {
  ResourceStore store;
  const auto make = [] { return std::make_shared<Other>(); };
  const auto a = store.LookupOrCreate<Other>("a", "x", make).value();
  const auto b = store.LookupOrCreate<Other>("b", "x", make).value();
  store.set_random_counter("a", 5);
  store.set_random_counter("b", 6);
  store.Reset({"a", "none"});
  EXPECT_TRUE(a->detached());
  EXPECT_FALSE(b->detached());
  EXPECT_EQ(store.random_counter("a"), 0U);
  EXPECT_EQ(store.random_counter("b"), 6U);
  EXPECT_THAT(store.List(), ElementsAre("b/x"));
  EXPECT_NE(store.LookupOrCreate<Other>("a", "x", make).value(), a);
  store.Reset({});
  EXPECT_TRUE(b->detached());
  EXPECT_TRUE(store.List().empty());
}

TEST(ResourceStoreTest, OneIsMadeHoweverManyAsk) {
  ResourceStore store;
  std::atomic<int> made{0};
  ThreadPool pool(Threads(4));
  pool.ParallelFor(100, 1, [&](int64_t, int64_t) {
    const auto found = store.LookupOrCreate<Other>("", "x", [&] {
      ++made;
      return std::make_shared<Other>();
    });
    EXPECT_TRUE(found.ok());
  });
  EXPECT_EQ(made, 1);
}

}  // namespace
}  // namespace millrace
