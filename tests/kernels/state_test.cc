#include <cmath>
#include <map>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_harness.h"

namespace millrace {
namespace {

Tensor Handle(KernelHarness& h, const std::string& name, DType dtype, const Shape& shape) {
  return h.RunOwn("VarHandleOp", {{"dtype", dtype}, {"shape", shape}, {"shared_name", name}}, {});
}

Status Update(KernelHarness& h, const char* op, AttrMap attrs, std::vector<Tensor> inputs) {
  return h.Run(op, std::move(attrs), std::move(inputs), {}).status();
}

Tensor Read(KernelHarness& h, const Tensor& handle) {
  return h.RunOwn("ReadVariableOp", {}, {handle});
}

Tensor Variable(KernelHarness& h, const std::string& name, const Tensor& value) {
  const Tensor handle = Handle(h, name, value.dtype(), value.shape());
  EXPECT_TRUE(Update(h, "AssignVariableOp", {}, {handle, value}).ok());
  return handle;
}

TEST(StateTest, VariablesLiveOnTheDevice) {
  KernelHarness h;
  const Tensor handle = Handle(h, "w", DType::kFloat, Shape({2}));
  const auto initialized = [&] {
    return Doubles(h.RunOne("VarIsInitializedOp", {}, {handle}, DType::kBool, Shape()))[0];
  };
  EXPECT_EQ(initialized(), 0);
  KernelHarness::Options own;
  own.own_outputs = 1;
  const Status unset = h.Run("ReadVariableOp", {}, {handle}, {}, own).status();
  EXPECT_EQ(unset.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(unset.message().find("'w'"), std::string::npos) << unset;
  ASSERT_TRUE(
      Update(h, "AssignVariableOp", {},
             {Handle(h, "w", DType::kFloat, Shape({2})), Tensor::Of<float>(Shape({2}), {1, 2})})
          .ok());
  EXPECT_EQ(initialized(), 1);
  ExpectNear(Read(h, handle), {1, 2}, 0);
  // Another dtype or shape under the same name is refused.
  EXPECT_EQ(
      h.Run("VarHandleOp", {{"dtype", DType::kDouble}, {"shape", Shape({2})}, {"shared_name", "w"}},
            {}, {}, own)
          .status()
          .code(),
      absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(Update(h, "AssignVariableOp", {}, {handle, Tensor::Scalar<float>(1)}).ok());
}

TEST(StateTest, AssignAddAndSubLeaveValuesThatWereRead) {
  KernelHarness h;
  for (DType dtype : {DType::kFloat, DType::kDouble, DType::kInt32, DType::kInt64}) {
    const Tensor handle =
        Variable(h, StrCat("w", Name(dtype)), FromDoubles(dtype, Shape({3}), {1, 2, 3}));
    const Tensor before = Read(h, handle);
    const Tensor delta = FromDoubles(dtype, Shape({3}), {10, 20, 30});
    ASSERT_TRUE(Update(h, "AssignAddVariableOp", {{"dtype", dtype}}, {handle, delta}).ok());
    ExpectNear(Read(h, handle), {11, 22, 33}, 0);
    ExpectNear(before, {1, 2, 3}, 0);
    ASSERT_TRUE(Update(h, "AssignSubVariableOp", {{"dtype", dtype}}, {handle, delta}).ok());
    ExpectNear(Read(h, handle), {1, 2, 3}, 0);
    const Tensor wrong = FromDoubles(dtype, Shape({1}), {1});
    const Status refused = Update(h, "AssignAddVariableOp", {{"dtype", dtype}}, {handle, wrong});
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(refused.message().find(StrCat("'w", Name(dtype), "'")), std::string::npos) << refused;
  }
}

Tensor Number(DType dtype, double v) { return FromDoubles(dtype, Shape(), {v}); }

TEST(StateTest, OptimizersAgainstLoops) {
  KernelHarness h(3);
  for (const DType dtype : {DType::kFloat, DType::kDouble}) {
    for (const int64_t n : {0, 1, 37, 100003}) {
      for (const bool nesterov : {false, true}) {
        SCOPED_TRACE(testing::Message() << Name(dtype) << n << nesterov);
        const Shape shape({n});
        const std::string key = StrCat(Name(dtype), n, nesterov);
        const Tensor g = RandomTensor(dtype, shape, 1);
        const Tensor w0 = RandomTensor(dtype, shape, 2), m0 = RandomTensor(dtype, shape, 3);
        Tensor v0 = RandomTensor(dtype, shape, 4);
        std::vector<double> squares = Doubles(v0);
        for (double& v : squares) v = v * v + 0.01;
        v0 = FromDoubles(dtype, shape, squares);
        const std::vector<double> dg = Doubles(g), dw = Doubles(w0), dm = Doubles(m0),
                                  dv = Doubles(v0);
        const double tolerance = dtype == DType::kFloat ? 1e-6 : 1e-14;
        const double rate = 0.25, momentum = 0.875, beta1 = 0.5, beta2 = 0.75, epsilon = 0.125;
        const AttrMap attrs = {{"T", dtype}, {"use_nesterov", nesterov}};

        const Tensor w = Variable(h, "sgd" + key, w0);
        ASSERT_TRUE(
            Update(h, "ResourceApplyGradientDescent", attrs, {w, Number(dtype, rate), g}).ok());
        std::vector<double> expected(n);
        for (int64_t i = 0; i < n; ++i) expected[i] = dw[i] - rate * dg[i];
        ExpectNear(Read(h, w), expected, tolerance);

        const Tensor wm = Variable(h, "w" + key, w0), mm = Variable(h, "m" + key, m0);
        ASSERT_TRUE(Update(h, "ResourceApplyMomentum", attrs,
                           {wm, mm, Number(dtype, rate), g, Number(dtype, momentum)})
                        .ok());
        std::vector<double> m(n), v(n);
        for (int64_t i = 0; i < n; ++i) {
          m[i] = momentum * dm[i] + dg[i];
          expected[i] = dw[i] - rate * (nesterov ? dg[i] + momentum * m[i] : m[i]);
        }
        ExpectNear(Read(h, mm), m, tolerance);
        ExpectNear(Read(h, wm), expected, tolerance);

        const Tensor wa = Variable(h, "wa" + key, w0), ma = Variable(h, "ma" + key, m0),
                     va = Variable(h, "va" + key, v0);
        ASSERT_TRUE(
            Update(h, "ResourceApplyAdam", attrs,
                   {wa, ma, va, Number(dtype, beta1), Number(dtype, beta2), Number(dtype, rate),
                    Number(dtype, beta1), Number(dtype, beta2), Number(dtype, epsilon), g})
                .ok());
        const double rate_t = rate * std::sqrt(1 - beta2) / (1 - beta1);
        for (int64_t i = 0; i < n; ++i) {
          m[i] = beta1 * dm[i] + (1 - beta1) * dg[i];
          v[i] = beta2 * dv[i] + (1 - beta2) * dg[i] * dg[i];
          const double direction = nesterov ? beta1 * m[i] + (1 - beta1) * dg[i] : m[i];
          expected[i] = dw[i] - rate_t * direction / (std::sqrt(v[i]) + epsilon);
        }
        ExpectNear(Read(h, ma), m, tolerance);
        ExpectNear(Read(h, va), v, tolerance);
        ExpectNear(Read(h, wa), expected, tolerance);
      }
    }
  }
}

TEST(StateTest, OptimizersRefuseWhatDoesNotFit) {
  KernelHarness h;
  const Tensor w = Variable(h, "w", Tensor::Zeros(DType::kFloat, Shape({3})));
  const Tensor m = Variable(h, "m", Tensor::Zeros(DType::kFloat, Shape({3})));
  const Tensor rate = Tensor::Scalar<float>(1), good = Tensor::Zeros(DType::kFloat, Shape({3}));
  const Tensor bad = Tensor::Zeros(DType::kFloat, Shape({4}));
  const AttrMap attrs = {{"T", DType::kFloat}};
  const auto invalid = absl::StatusCode::kInvalidArgument;
  const Status status = Update(h, "ResourceApplyGradientDescent", attrs, {w, rate, bad});
  EXPECT_EQ(status.code(), invalid);
  EXPECT_NE(status.message().find("'w'"), std::string::npos) << status;
  EXPECT_EQ(Update(h, "ResourceApplyGradientDescent", attrs, {w, good, good}).code(), invalid);
  EXPECT_EQ(Update(h, "ResourceApplyGradientDescent", attrs, {good, rate, good}).code(), invalid);
  EXPECT_EQ(Update(h, "ResourceApplyMomentum", attrs, {w, m, rate, bad, rate}).code(), invalid);
  // The same variable twice would lock itself out.
  EXPECT_EQ(Update(h, "ResourceApplyMomentum", attrs, {w, w, rate, good, rate}).code(), invalid);
}

TEST(StateTest, HandleSurvivesReset) {
  KernelHarness h;
  const std::string name = "node";
  const OpDef op("VarHandleOp");
  const AttrMap attrs = {{"dtype", DType::kFloat}, {"shape", Shape({1})}};
  const NodeSignature signature;
  auto kernel = h.registry().Create({name, op, attrs, signature, h.device()});
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const auto handle = [&] {
    Tensor out;
    KernelContext context(h.step(), {}, absl::MakeSpan(&out, 1), nullptr);
    EXPECT_TRUE((*kernel)->Compute(context).ok());
    return out;
  };
  const Tensor first = handle();
  EXPECT_EQ(handle().resource(), first.resource());
  h.device().resources().Reset({});
  EXPECT_NE(handle().resource(), first.resource());
  EXPECT_FALSE(handle().resource()->detached());
}

class MapRendezvous final : public Rendezvous {
 public:
  Status Send(ChannelId channel, Tensor tensor) override {
    sent_[channel] = std::move(tensor);
    return absl::OkStatus();
  }
  void RecvAsync(ChannelId channel, RecvDone done) override {
    auto at = sent_.find(channel);
    if (at == sent_.end()) {
      done(Aborted("nothing was sent"));
    } else {
      done(at->second);
    }
  }
  void Abort(const Status&) override {}

 private:
  std::map<ChannelId, Tensor> sent_;
};

TEST(CommTest, SendAndRecvOverTheRendezvous) {
  KernelHarness h;
  MapRendezvous rendezvous;
  h.step().rendezvous = &rendezvous;
  const Tensor x = Tensor::Of<float>(Shape({2}), {1, 2});
  ASSERT_TRUE(h.Run("_Send", {{"T", DType::kFloat}, {"channel", 7}}, {x}, {}).ok());
  EXPECT_TRUE(h.RunOwn("_Recv", {{"channel", 7}}, {}).SharesBufferWith(x));
  KernelHarness::Options own;
  own.own_outputs = 1;
  EXPECT_EQ(h.Run("_Recv", {{"channel", 8}}, {}, {}, own).status().code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(h.Run("_Recv", {{"channel", -1}}, {}, {}, own).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(h.Run("NoOp", {}, {}, {}).ok());
}

}  // namespace
}  // namespace millrace
