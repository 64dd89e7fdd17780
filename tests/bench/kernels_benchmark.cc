// Speed of single CPU kernels at the sizes of small networks, beside the variants that they were
// chosen from. FLOP/s count multiplications and additions, padding included.
#include <array>

#include "benchmark/benchmark.h"
#include "kernels/cpu/onednn.h"
#include "kernels/cpu/vector_gemm.h"
#include "tests/kernels/kernel_harness.h"

namespace millrace {
namespace {

using benchmark::Counter;
using benchmark::State;

constexpr DType kF = DType::kFloat;

KernelHarness& Harness(int threads) {
  static auto* const harnesses = new std::array<std::unique_ptr<KernelHarness>, 8>();
  auto& h = (*harnesses)[threads];
  if (h == nullptr) h = std::make_unique<KernelHarness>(threads);
  return *h;
}

void Flops(State& state, double flops) {
  state.counters["FLOP/s"] =
      Counter(flops, Counter::kIsIterationInvariantRate, Counter::OneK::kIs1000);
}
void Bytes(State& state, double bytes) {
  state.counters["B/s"] =
      Counter(bytes, Counter::kIsIterationInvariantRate, Counter::OneK::kIs1000);
}

// Runs `op` on a pool of `threads` (0: the caller alone).
void RunOp(State& state, int threads, const char* op, AttrMap attrs, std::vector<Tensor> inputs,
           std::vector<OutputSpec> outputs) {
  auto ready = Harness(threads).Ready(op, std::move(attrs), std::move(inputs), std::move(outputs),
                                      KernelHarness::Options());
  if (!ready.ok()) {
    state.SkipWithError(std::string(ready.status().message()).c_str());
    return;
  }
  for (auto _ : state) {
    if (Status status = ready->Run(); !status.ok()) {
      state.SkipWithError(std::string(status.message()).c_str());
      return;
    }
  }
}

// ---- products ----

void MatMul(State& state) {
  const int64_t m = state.range(0), k = state.range(1), n = state.range(2);
  const bool ta = state.range(3) & 1, tb = state.range(3) & 2;
  RunOp(state, static_cast<int>(state.range(4)), "MatMul",
        {{"T", kF}, {"transpose_a", ta}, {"transpose_b", tb}},
        {RandomTensor(kF, ta ? Shape({k, m}) : Shape({m, k}), 1),
         RandomTensor(kF, tb ? Shape({n, k}) : Shape({k, n}), 2)},
        {{kF, Shape({m, n})}});
  Flops(state, 2.0 * static_cast<double>(m * k * n));
}
void MatMulSizes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"m", "k", "n", "transposed", "threads"});
  for (int64_t threads : {0, 2}) {
    b->Args({64, 784, 512, 0, threads});  // forward
    b->Args({64, 512, 784, 2, threads});  // gradient of the input
    b->Args({784, 64, 512, 1, threads});  // gradient of the weights
    b->Args({64, 512, 10, 0, threads});
    b->Args({512, 64, 10, 1, threads});
    b->Args({64, 1568, 512, 0, threads});  // LeNet
    b->Args({512, 512, 512, 0, threads});
    b->Args({1024, 1024, 1024, 0, threads});
  }
}
BENCHMARK(MatMul)->Apply(MatMulSizes)->UseRealTime();

// [batch,m,k] [batch,k,n], y the same for all if `shared`.
void BatchMatMul(State& state) {
  const int64_t batch = state.range(0), m = state.range(1), k = state.range(2), n = state.range(3);
  const bool shared = state.range(4) != 0;
  RunOp(state, 0, "BatchMatMulV2", {{"T", kF}},
        {RandomTensor(kF, Shape({batch, m, k}), 1),
         RandomTensor(kF, shared ? Shape({k, n}) : Shape({batch, k, n}), 2)},
        {{kF, Shape({batch, m, n})}});
  Flops(state, 2.0 * static_cast<double>(batch * m * k * n));
}
BENCHMARK(BatchMatMul)->Apply([](auto* b) {
  b->ArgNames({"batch", "m", "k", "n", "shared"});
  b->Args({96, 64, 32, 64, 0})->Args({1000, 8, 8, 8, 0})->Args({8, 256, 256, 256, 0});
  b->Args({96, 8, 128, 256, 1});
});

void OwnGemm(State& state) {
  const int64_t m = state.range(0), k = state.range(1), n = state.range(2);
  const bool ta = state.range(3) & 1, tb = state.range(3) & 2;
  const Tensor a = RandomTensor(kF, Shape({m, k}), 1), b = RandomTensor(kF, Shape({k, n}), 2);
  Tensor c = Tensor::Zeros(kF, Shape({m, n}));
  Tensor scratch = Tensor::Zeros(kF, Shape({vector::GemmWorkspace(m, n, k)}));
  for (auto _ : state) {
    vector::Gemm(m, n, k, vector::Matrix<float>{a.data<float>(), ta ? 1 : k, ta ? m : 1},
                 vector::Matrix<float>{b.data<float>(), tb ? 1 : n, tb ? k : 1}, false,
                 c.mutable_data<float>(), n, scratch.mutable_data<float>());
  }
  Flops(state, 2.0 * static_cast<double>(m * k * n));
}
BENCHMARK(OwnGemm)->Apply([](auto* b) {
  b->ArgNames({"m", "k", "n", "transposed"});
  b->Args({64, 784, 512, 0})->Args({64, 512, 784, 2})->Args({784, 64, 512, 1});
  b->Args({64, 512, 10, 0})->Args({512, 64, 10, 1})->Args({512, 512, 512, 0});
  b->Args({1024, 1024, 1024, 0});
});

// ---- convolutions ----

struct ConvCase {
  const char* name;
  int64_t n, h, w, c, f, k;
};
constexpr ConvCase kConvs[] = {
    {"LeNet 1: 64x28x28x1, 5x5, 16", 64, 28, 28, 1, 5, 16},
    {"LeNet 2: 64x14x14x16, 5x5, 32", 64, 14, 14, 16, 5, 32},
    {"16x56x56x64, 3x3, 64", 16, 56, 56, 64, 3, 64},
    {"4x14x14x256, 3x3, 256", 4, 14, 14, 256, 3, 256},
    {"4x7x7x512, 3x3, 512", 4, 7, 7, 512, 3, 512},
    {"16x56x56x64, 1x1, 256", 16, 56, 56, 64, 1, 256},
};
const char* const kPasses[] = {"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"};

double FlopsOf(const ConvCase& c) {
  return 2.0 * static_cast<double>(c.n * c.h * c.w * c.f * c.f * c.c * c.k);
}

void Conv(State& state) {
  const ConvCase& c = kConvs[state.range(0)];
  const Shape image({c.n, c.h, c.w, c.c}), filter({c.f, c.f, c.c, c.k}), out({c.n, c.h, c.w, c.k});
  const auto dims = [](const Shape& s) {
    return Ints({static_cast<int32_t>(s[0]), static_cast<int32_t>(s[1]), static_cast<int32_t>(s[2]),
                 static_cast<int32_t>(s[3])});
  };
  const AttrMap attrs = {
      {"T", kF}, {"strides", std::vector<int64_t>{1, 1, 1, 1}}, {"padding", "SAME"}};
  const Tensor x = RandomTensor(kF, image, 1), w = RandomTensor(kF, filter, 2),
               dy = RandomTensor(kF, out, 3);
  const int pass = static_cast<int>(state.range(1));
  const int threads = static_cast<int>(state.range(2));
  state.SetLabel(StrCat(kPasses[pass], " ", c.name));
  if (pass == 0) {
    RunOp(state, threads, kPasses[0], attrs, {x, w}, {{kF, out}});
  } else if (pass == 1) {
    RunOp(state, threads, kPasses[1], attrs, {dims(image), w, dy}, {{kF, image}});
  } else {
    RunOp(state, threads, kPasses[2], attrs, {x, dims(filter), dy}, {{kF, filter}});
  }
  Flops(state, FlopsOf(c));
}
BENCHMARK(Conv)
    ->ArgNames({"case", "pass", "threads"})
    ->ArgsProduct({{0, 1, 2, 3, 4, 5}, {0, 1, 2}, {0}});
BENCHMARK(Conv)
    ->ArgNames({"case", "pass", "threads"})
    ->ArgsProduct({{0, 1, 2, 3, 4, 5}, {0, 1, 2}, {2}})
    ->UseRealTime();

// What oneDNN would do: NHWC images, filters in the layout that it prefers (reordered beforehand,
// which is not counted), one thread.
void OneDnnConv(State& state) {
  using dnnl::memory;
  const ConvCase& c = kConvs[state.range(0)];
  const int pass = static_cast<int>(state.range(1));
  state.SetLabel(StrCat(kPasses[pass], " ", c.name));
  const Status status = CallOneDnn("benchmark", [&] {
    const auto& engine = OneDnnEngine();
    dnnl::stream stream(engine);
    const auto f32 = memory::data_type::f32;
    const memory::desc x({c.n, c.c, c.h, c.w}, f32, memory::format_tag::nhwc);
    const memory::desc y({c.n, c.k, c.h, c.w}, f32, memory::format_tag::nhwc);
    const memory::desc w({c.k, c.c, c.f, c.f}, f32, memory::format_tag::any);
    const memory::dims ones = {1, 1}, before = {(c.f - 1) / 2, (c.f - 1) / 2},
                       after = {c.f / 2, c.f / 2};
    const auto algorithm = dnnl::algorithm::convolution_direct;
    const dnnl::convolution_forward::primitive_desc forward(
        dnnl::convolution_forward::desc(dnnl::prop_kind::forward_training, algorithm, x, w, y, ones,
                                        before, after),
        engine);
    memory mx(x, engine), my(y, engine);
    for (memory* m : {&mx, &my}) {
      std::fill_n(static_cast<float*>(m->get_data_handle()), m->get_desc().get_size() / 4, 0.5f);
    }
    if (pass == 0) {
      memory mw(forward.weights_desc(), engine);
      const dnnl::convolution_forward primitive(forward);
      for (auto _ : state) {
        primitive.execute(stream, {{DNNL_ARG_SRC, mx}, {DNNL_ARG_WEIGHTS, mw}, {DNNL_ARG_DST, my}});
      }
    } else if (pass == 1) {
      const dnnl::convolution_backward_data::primitive_desc backward(
          dnnl::convolution_backward_data::desc(algorithm, x, w, y, ones, before, after), engine,
          forward);
      memory mw(backward.weights_desc(), engine);
      const dnnl::convolution_backward_data primitive(backward);
      for (auto _ : state) {
        primitive.execute(
            stream, {{DNNL_ARG_DIFF_SRC, mx}, {DNNL_ARG_WEIGHTS, mw}, {DNNL_ARG_DIFF_DST, my}});
      }
    } else {
      const dnnl::convolution_backward_weights::primitive_desc backward(
          dnnl::convolution_backward_weights::desc(algorithm, x, w, y, ones, before, after), engine,
          forward);
      memory mw(backward.diff_weights_desc(), engine);
      const dnnl::convolution_backward_weights primitive(backward);
      for (auto _ : state) {
        primitive.execute(
            stream, {{DNNL_ARG_SRC, mx}, {DNNL_ARG_DIFF_WEIGHTS, mw}, {DNNL_ARG_DIFF_DST, my}});
      }
    }
  });
  if (!status.ok()) state.SkipWithError(std::string(status.message()).c_str());
  Flops(state, FlopsOf(c));
}
BENCHMARK(OneDnnConv)->ArgNames({"case", "pass"})->ArgsProduct({{0, 1, 2, 3, 4, 5}, {0, 1, 2}});

// ---- bound by memory ----

void Unary(State& state, const char* op) {
  const Shape shape({state.range(0)});
  RunOp(state, 0, op, {{"T", kF}, {"alpha", 0.2f}}, {RandomTensor(kF, shape, 1)}, {{kF, shape}});
  Bytes(state, 8.0 * static_cast<double>(state.range(0)));
}
void Binary(State& state, const char* op) {
  const Shape shape({state.range(0)});
  RunOp(state, 0, op, {{"T", kF}}, {RandomTensor(kF, shape, 1), RandomTensor(kF, shape, 2)},
        {{kF, shape}});
  Bytes(state, 12.0 * static_cast<double>(state.range(0)));
}
BENCHMARK_CAPTURE(Unary, Relu, "Relu")->Arg(1)->Arg(32768)->Arg(1 << 22);
BENCHMARK_CAPTURE(Unary, Exp, "Exp")->Arg(32768);
BENCHMARK_CAPTURE(Unary, Log, "Log")->Arg(32768);
BENCHMARK_CAPTURE(Unary, Tanh, "Tanh")->Arg(32768);
BENCHMARK_CAPTURE(Unary, Sigmoid, "Sigmoid")->Arg(32768);
BENCHMARK_CAPTURE(Unary, Expm1, "Expm1")->Arg(32768);
BENCHMARK_CAPTURE(Unary, Log1p, "Log1p")->Arg(32768);
BENCHMARK_CAPTURE(Unary, Erf, "Erf")->Arg(32768);
BENCHMARK_CAPTURE(Unary, Elu, "Elu")->Arg(32768);
BENCHMARK_CAPTURE(Unary, Softplus, "Softplus")->Arg(32768);
BENCHMARK_CAPTURE(Unary, Relu6, "Relu6")->Arg(32768);
BENCHMARK_CAPTURE(Unary, LeakyRelu, "LeakyRelu")->Arg(32768);
BENCHMARK_CAPTURE(Binary, Add, "AddV2")->Arg(1)->Arg(32768)->Arg(1 << 22);
BENCHMARK_CAPTURE(Binary, Mul, "Mul")->Arg(32768);
BENCHMARK_CAPTURE(Binary, ReluGrad, "ReluGrad")->Arg(32768);

void Pool(State& state, const char* op) {
  const Shape image({64, 28, 28, 16}), out({64, 14, 14, 16});
  const AttrMap attrs = {{"T", kF},
                         {"ksize", std::vector<int64_t>{1, 2, 2, 1}},
                         {"strides", std::vector<int64_t>{1, 2, 2, 1}},
                         {"padding", "VALID"}};
  const Tensor x = RandomTensor(kF, image, 1), y = RandomTensor(kF, out, 2);
  const std::string name = op;
  if (name == "MaxPoolGrad") {
    RunOp(state, 0, op, attrs, {x, y, y}, {{kF, image}});
  } else {
    RunOp(state, 0, op, attrs, {x}, {{kF, out}});
  }
  Bytes(state, 4.0 * 1.25 * static_cast<double>(image.num_elements()));
}
BENCHMARK_CAPTURE(Pool, MaxPool, "MaxPool");
BENCHMARK_CAPTURE(Pool, MaxPoolGrad, "MaxPoolGrad");
BENCHMARK_CAPTURE(Pool, AvgPool, "AvgPool");

void BiasAdd(State& state) {
  const Shape shape({64 * 784, 16});
  RunOp(state, 0, "BiasAdd", {{"T", kF}},
        {RandomTensor(kF, shape, 1), RandomTensor(kF, Shape({16}), 2)}, {{kF, shape}});
  Bytes(state, 8.0 * static_cast<double>(shape.num_elements()));
}
BENCHMARK(BiasAdd);
void BiasAddGrad(State& state) {
  const Shape shape({64 * 784, 16});
  RunOp(state, 0, "BiasAddGrad", {{"T", kF}}, {RandomTensor(kF, shape, 1)}, {{kF, Shape({16})}});
  Bytes(state, 4.0 * static_cast<double>(shape.num_elements()));
}
BENCHMARK(BiasAddGrad);

void Transpose(State& state) {
  RunOp(state, 0, "Transpose", {{"T", kF}},
        {RandomTensor(kF, Shape({1024, 1024}), 1), Ints({1, 0})}, {{kF, Shape({1024, 1024})}});
  Bytes(state, 8.0 * 1024 * 1024);
}
BENCHMARK(Transpose);

void CrossEntropy(State& state) {
  const Shape shape({64, state.range(0)});
  RunOp(state, 0, "SparseSoftmaxCrossEntropyWithLogits", {{"T", kF}, {"Tlabels", DType::kInt32}},
        {RandomTensor(kF, shape, 1), Tensor::Zeros(DType::kInt32, Shape({64}))},
        {{kF, Shape({64})}, {kF, shape}});
}
BENCHMARK(CrossEntropy)->Arg(10)->Arg(1000);

// ---- updates of 1 M parameters ----

void Optimizer(State& state, const char* op) {
  KernelHarness& h = Harness(static_cast<int>(state.range(0)));
  const Shape shape({1 << 20});
  const Tensor zeros = RandomTensor(kF, shape, 1, 1e-3);
  const auto variable = [&](const char* name) {
    const Tensor handle = h.RunOwn(
        "VarHandleOp", {{"dtype", kF}, {"shape", shape}, {"shared_name", StrCat(op, name)}}, {});
    // A copy of its own, or the first update would make one.
    const Tensor value = *zeros.Copy(HostAllocator());
    if (!h.Run("AssignVariableOp", {}, {handle, value}, {}).ok()) state.SkipWithError("assign");
    return handle;
  };
  const auto number = [](float v) { return Tensor::Scalar<float>(v); };
  const Tensor w = variable("w"), m = variable("m"), v = variable("v");
  const Tensor g = RandomTensor(kF, shape, 2);
  const std::string name = op;
  if (name == "ResourceApplyAdam") {
    RunOp(state, static_cast<int>(state.range(0)), op, {{"T", kF}},
          {w, m, v, number(0.9f), number(0.999f), number(1e-3f), number(0.9f), number(0.999f),
           number(1e-8f), g},
          {});
    Bytes(state, 28.0 * (1 << 20));
  } else if (name == "ResourceApplyMomentum") {
    RunOp(state, static_cast<int>(state.range(0)), op, {{"T", kF}},
          {w, m, number(1e-3f), g, number(0.9f)}, {});
    Bytes(state, 20.0 * (1 << 20));
  } else {
    RunOp(state, static_cast<int>(state.range(0)), op, {{"T", kF}}, {w, number(1e-3f), g}, {});
    Bytes(state, 12.0 * (1 << 20));
  }
}
BENCHMARK_CAPTURE(Optimizer, Adam, "ResourceApplyAdam")->Arg(0)->Arg(2)->UseRealTime();
BENCHMARK_CAPTURE(Optimizer, Momentum, "ResourceApplyMomentum")->Arg(0)->Arg(2)->UseRealTime();
BENCHMARK_CAPTURE(Optimizer, GradientDescent, "ResourceApplyGradientDescent")
    ->Arg(0)
    ->Arg(2)
    ->UseRealTime();

}  // namespace
}  // namespace millrace

BENCHMARK_MAIN();
