// Fits a line to three points: the README's program.
#include <cstdio>

#include "python_free_api/millrace.h"

using namespace millrace;

Status Fit() {
  MR_ASSIGN_OR_RETURN(auto runtime, Runtime::Create());
  GraphBuilder b(runtime->ops());
  Variables variables(b);
  Value x = Placeholder(b, DType::kFloat, {PartialShape::kUnknown, 2}, "x");
  Value y = Placeholder(b, DType::kFloat, {PartialShape::kUnknown, 1}, "y");
  Dense line(variables, "line", /*inputs=*/2, /*outputs=*/1);
  Value loss = ReduceMean(Square(line(x) - y));
  Operation train = Minimize(loss, variables, *Adam(0.1));
  Operation init = variables.Initialize();

  MR_ASSIGN_OR_RETURN(auto session, runtime->OpenSession(b));
  MR_ASSIGN_OR_RETURN(auto first, session->Prepare({{}, {}, {init.name()}}));
  MR_RETURN_IF_ERROR(session->Run(*first, {}).status());
  MR_ASSIGN_OR_RETURN(auto step, session->Prepare({{"x", "y"}, {loss.name()}, {train.name()}}));
  for (int i = 0; i < 200; ++i) {
    Tensor xs = Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 7});
    Tensor ys = Tensor::Of<float>({3, 1}, {5, 11, 19});
    MR_ASSIGN_OR_RETURN(RunResult result, session->Run(*step, {xs, ys}));
    if (i % 50 == 49) std::printf("step %d: loss %g\n", i + 1, *result.fetches[0].data<float>());
  }
  return absl::OkStatus();
}

int main() { return Fit().ok() ? 0 : 1; }
