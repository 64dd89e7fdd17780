#include <memory>
#include <string>
#include <vector>

#include "core/framework/kernel.h"
#include "core/framework/resource.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

class FakeDevice final : public Device {
 public:
  explicit FakeDevice(const char* name) { info_.name = DeviceName::Parse(name).value(); }
  const DeviceInfo& info() const override { return info_; }
  Allocator& allocator() override { return HostAllocator(); }
  ResourceStore& resources() override { return resources_; }
  Scheduler& pool() override { return pool_; }

 private:
  class Inline final : public Scheduler {
   public:
    void Schedule(Task task) override { std::move(task)(); }
    int parallelism() const override { return 1; }
  };
  DeviceInfo info_;
  ResourceStore resources_;
  Inline pool_;
};

template <typename T>
class SizeKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    MR_RETURN_IF_ERROR(context.AllocateOutput(0, DType::kInt32, Shape()));
    context.output(0).mutable_data<int32_t>()[0] = sizeof(T);
    return absl::OkStatus();
  }
};

template <typename T>
class PickyKernel final : public Kernel {
 public:
  static StatusOr<std::unique_ptr<Kernel>> Create(const KernelConstruction& c) {
    MR_RETURN_IF_ERROR(c.attrs.Get<int64_t>("k").status());
    return std::unique_ptr<Kernel>(std::make_unique<PickyKernel>());
  }
  Status Compute(KernelContext&) const override { return absl::OkStatus(); }
};

StatusOr<std::unique_ptr<Kernel>> MakeNothing(const KernelConstruction&) {
  return std::unique_ptr<Kernel>();
}

StatusOr<std::unique_ptr<Kernel>> Create(const KernelRegistry& registry, const char* op,
                                         const AttrMap& attrs,
                                         const char* device = "/job:w/task:0/cpu:0") {
  const OpDef def(op);
  const std::string name = "node";
  const NodeSignature signature;
  FakeDevice fake(device);
  return registry.Create({name, def, attrs, signature, fake});
}

KernelRegistry Filled() {
  KernelRegistry registry;
  AddTyped<SizeKernel, double, float>(registry, "Size", "CPU");
  AddTyped<SizeKernel, float>(registry, "Size", "CUDA");
  AddTyped<PickyKernel, float>(registry, "Picky", "CPU", "Tx");
  registry.Add("NoOp", "CPU", MakeNothing);
  for (DType from : {DType::kFloat, DType::kInt32}) {
    registry.Add({"Cast", "CPU", {{"SrcT", {from}}, {"DstT", {DType::kDouble}}}}, MakeNothing);
  }
  registry.Add({"Many", "CPU", {{"Tlist", {DType::kFloat, DType::kInt32}}}}, MakeNothing);
  EXPECT_TRUE(registry.status().ok()) << registry.status();
  return registry;
}

TEST(KernelRegistryTest, PicksByDtype) {
  const KernelRegistry registry = Filled();
  FakeDevice device("/job:w/task:0/cpu:0");
  StepContext step;
  step.device = &device;
  const std::pair<DType, int> cases[] = {{DType::kFloat, 4}, {DType::kDouble, 8}};
  for (const auto& [dtype, size] : cases) {
    const auto kernel = Create(registry, "Size", {{"T", dtype}});
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    std::vector<Tensor> outputs(1);
    KernelContext context(step, {}, absl::MakeSpan(outputs), nullptr);
    ASSERT_TRUE((*kernel)->Compute(context).ok());
    EXPECT_EQ(outputs[0].span<int32_t>()[0], size);
    EXPECT_EQ(context.AllocateOutput(1, DType::kFloat, Shape()).code(),
              absl::StatusCode::kInternal);
    EXPECT_EQ(context.AllocateScratch(DType::kFloat, Shape{2})->byte_size(), 8U);
  }
}

TEST(KernelRegistryTest, CheckSaysWhatThereIs) {
  const KernelRegistry registry = Filled();
  const std::vector<DType> fits = {DType::kInt32, DType::kFloat}, no = {DType::kString};
  const struct {
    const char* op;
    const char* device;
    AttrMap attrs;
    const char* message;  // null: there is one
  } cases[] = {
      {"Size", "CPU", {{"T", DType::kFloat}}, nullptr},
      {"NoOp", "CPU", {}, nullptr},
      {"Cast", "CPU", {{"SrcT", DType::kInt32}, {"DstT", DType::kDouble}}, nullptr},
      {"Many", "CPU", {{"Tlist", fits}}, nullptr},
      {"Many", "CPU", {{"Tlist", no}}, "no CPU kernel for Tlist=[string]"},
      {"None", "CPU", {}, "op 'None' has no kernel on any device"},
      {"NoOp", "CUDA", {}, "op 'NoOp' has no CUDA kernel; there are CPU: any dtype"},
      {"Size",
       "CPU",
       {{"T", DType::kInt8}},
       "op 'Size' has no CPU kernel for T=int8; there are CPU: T=float, double; CUDA: T=float"},
      {"Size", "CUDA", {{"T", DType::kDouble}}, "no CUDA kernel for T=double"},
      {"Size", "CPU", {}, "T=(missing)"},
      {"Size", "CPU", {{"T", 3}}, "T=3"},
      {"Cast",
       "CPU",
       {{"SrcT", DType::kInt32}, {"DstT", DType::kFloat}},
       "for DstT=float SrcT=int32; there are CPU: SrcT=float DstT=double or SrcT=int32"},
  };
  for (const auto& c : cases) {
    const Status status = registry.Check(c.op, c.device, c.attrs);
    if (c.message == nullptr) {
      EXPECT_TRUE(status.ok()) << status;
    } else {
      EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
      EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
    }
  }
}

TEST(KernelRegistryTest, CreateNamesTheNode) {
  const KernelRegistry registry = Filled();
  const Status status = Create(registry, "Picky", {{"Tx", DType::kFloat}}).status();
  EXPECT_EQ(status.message(), "node 'node' (Picky): attribute 'k' is missing");
  EXPECT_TRUE(Create(registry, "Picky", {{"Tx", DType::kFloat}, {"k", 1}}).ok());
  EXPECT_EQ(Create(registry, "NoOp", {}).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(Create(registry, "NoOp", {}, "/job:w").status().code(), absl::StatusCode::kNotFound);
}

TEST(KernelRegistryTest, RefusesAmbiguousAndIncompleteKernels) {
  const KernelDef for_float{"Op", "CPU", {{"T", {DType::kFloat, DType::kInt32}}}};
  const struct {
    KernelDef def;
    KernelFactory factory;
    const char* message;  // null: fine beside `for_float`
  } cases[] = {
      {{"Op", "CPU", {{"T", {DType::kDouble}}}}, MakeNothing, nullptr},
      {{"Op", "CUDA", {{"T", {DType::kFloat}}}}, MakeNothing, nullptr},
      {{"Op", "CPU", {{"T", {DType::kInt32}}}}, MakeNothing, "for CPU: T=int32 is there already"},
      {{"Op", "CPU", {{"U", {DType::kInt32}}}}, MakeNothing, "is there already"},
      {{"Op", "CPU", {}}, MakeNothing, "for CPU: any dtype is there already, for CPU: T=float"},
      {{"Op2", "CPU", {}}, nullptr, "CPU kernel of 'Op2': the factory is null"},
      {{"", "CPU", {}}, MakeNothing, "op and device type must be given"},
  };
  for (const auto& c : cases) {
    KernelRegistry registry;
    registry.Add(for_float, MakeNothing);
    registry.Add(c.def, c.factory);
    EXPECT_EQ(registry.status().ok(), c.message == nullptr) << registry.status();
    if (c.message != nullptr) {
      EXPECT_THAT(std::string(registry.status().message()), HasSubstr(c.message));
    }
  }
}

TEST(KernelRegistryTest, AllIsSorted) {
  std::string text;
  const KernelRegistry registry = Filled();
  for (const KernelDef* def : registry.All())
    absl::StrAppend(&text, def->op, def->device_type, " ");
  EXPECT_EQ(text, "CastCPU CastCPU ManyCPU NoOpCPU PickyCPU SizeCPU SizeCPU SizeCUDA ");
}

}  // namespace
}  // namespace millrace
