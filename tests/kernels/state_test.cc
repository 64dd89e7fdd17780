#include <cmath>
#include <map>

#include "core/framework/resource.h"
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
  const DType dtype = dynamic_cast<Variable&>(*handle.resource()).dtype();
  return h.RunOwn("ReadVariableOp", {{"dtype", dtype}}, {handle});
}

Tensor NewVariable(KernelHarness& h, const std::string& name, const Tensor& value) {
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
  const Status unset =
      h.Run("ReadVariableOp", {{"dtype", DType::kFloat}}, {handle}, {}, own).status();
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
        NewVariable(h, StrCat("w", Name(dtype)), FromDoubles(dtype, Shape({3}), {1, 2, 3}));
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

TEST(StateTest, RowsOfVariables) {
  KernelHarness h(3);
  KernelHarness::Options own;
  own.own_outputs = 1;
  for (const DType dtype : {DType::kFloat, DType::kDouble, DType::kInt32, DType::kInt64}) {
    SCOPED_TRACE(Name(dtype));
    const auto tensor = [&](const Shape& shape, std::vector<double> values) {
      return FromDoubles(dtype, shape, values);
    };
    const AttrMap attrs = {{"dtype", dtype}};
    const Tensor table =
        NewVariable(h, StrCat("table", Name(dtype)), tensor(Shape({3, 2}), {1, 2, 3, 4, 5, 6}));
    const Tensor rows = Tensor::Of<int32_t>(Shape({3}), {2, 0, 2});
    ExpectNear(h.RunOwn("ResourceGather", attrs, {table, rows}), {5, 6, 1, 2, 5, 6}, 0);
    // An index that is there twice counts twice.
    ASSERT_TRUE(Update(h, "ResourceScatterAdd", attrs,
                       {table, rows, tensor(Shape({3, 2}), {10, 20, 30, 40, 50, 60})})
                    .ok());
    ExpectNear(Read(h, table), {31, 42, 3, 4, 65, 86}, 0);
    ASSERT_TRUE(Update(h, "ResourceScatterSub", attrs,
                       {table, Tensor::Of<int64_t>(Shape({1}), {1}), tensor(Shape(), {2})})
                    .ok());
    ExpectNear(Read(h, table), {31, 42, 1, 2, 65, 86}, 0);
    for (const int32_t bad : {-1, 3}) {
      const Tensor index = Tensor::Of<int32_t>(Shape({2}), {0, bad});
      const Status scatter = Update(h, "ResourceScatterAdd", attrs,
                                    {table, index, tensor(Shape({2, 2}), {1, 1, 1, 1})});
      const Status gather = h.Run("ResourceGather", attrs, {table, index}, {}, own).status();
      for (const Status& status : {scatter, gather}) {
        EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
        EXPECT_NE(status.message().find(StrCat("index ", bad)), std::string::npos) << status;
      }
    }
    // Nothing has changed, not even what stood before the bad index.
    ExpectNear(Read(h, table), {31, 42, 1, 2, 65, 86}, 0);
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

        const Tensor w = NewVariable(h, "sgd" + key, w0);
        ASSERT_TRUE(
            Update(h, "ResourceApplyGradientDescent", attrs, {w, Number(dtype, rate), g}).ok());
        std::vector<double> expected(n);
        for (int64_t i = 0; i < n; ++i) expected[i] = dw[i] - rate * dg[i];
        ExpectNear(Read(h, w), expected, tolerance);

        const Tensor wm = NewVariable(h, "w" + key, w0), mm = NewVariable(h, "m" + key, m0);
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

        const Tensor wk = NewVariable(h, "wk" + key, w0), mk = NewVariable(h, "mk" + key, m0);
        ASSERT_TRUE(Update(h, "ResourceApplyKerasMomentum", attrs,
                           {wk, mk, Number(dtype, rate), g, Number(dtype, momentum)})
                        .ok());
        for (int64_t i = 0; i < n; ++i) {
          m[i] = momentum * dm[i] - rate * dg[i];
          expected[i] = dw[i] + (nesterov ? momentum * m[i] - rate * dg[i] : m[i]);
        }
        ExpectNear(Read(h, mk), m, tolerance);
        ExpectNear(Read(h, wk), expected, tolerance);

        const bool update_slots = nesterov;
        const Tensor wg = NewVariable(h, "wg" + key, w0), vg = NewVariable(h, "vg" + key, v0);
        ASSERT_TRUE(Update(h, "ResourceApplyAdagrad",
                           {{"T", dtype}, {"update_slots", update_slots}},
                           {wg, vg, Number(dtype, rate), g})
                        .ok());
        for (int64_t i = 0; i < n; ++i) {
          v[i] = dv[i] + (update_slots ? dg[i] * dg[i] : 0);
          expected[i] = dw[i] - rate * dg[i] / std::sqrt(v[i]);
        }
        ExpectNear(Read(h, vg), v, tolerance);
        ExpectNear(Read(h, wg), expected, 10 * tolerance);

        const Tensor wr = NewVariable(h, "wr" + key, w0), vr = NewVariable(h, "vr" + key, v0),
                     mr = NewVariable(h, "mr" + key, m0);
        ASSERT_TRUE(Update(h, "ResourceApplyRMSProp", {{"T", dtype}},
                           {wr, vr, mr, Number(dtype, rate), Number(dtype, beta2),
                            Number(dtype, momentum), Number(dtype, epsilon), g})
                        .ok());
        for (int64_t i = 0; i < n; ++i) {
          v[i] = beta2 * dv[i] + (1 - beta2) * dg[i] * dg[i];
          m[i] = momentum * dm[i] + rate * dg[i] / std::sqrt(v[i] + epsilon);
          expected[i] = dw[i] - m[i];
        }
        ExpectNear(Read(h, vr), v, tolerance);
        ExpectNear(Read(h, mr), m, tolerance);
        ExpectNear(Read(h, wr), expected, tolerance);

        const Tensor wa = NewVariable(h, "wa" + key, w0), ma = NewVariable(h, "ma" + key, m0),
                     va = NewVariable(h, "va" + key, v0);
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
  const Tensor w = NewVariable(h, "w", Tensor::Zeros(DType::kFloat, Shape({3})));
  const Tensor m = NewVariable(h, "m", Tensor::Zeros(DType::kFloat, Shape({3})));
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
