#include <atomic>

#include "core/base/thread_pool.h"
#include "distributed/grpc/client.h"
#include "distributed/grpc/server.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/generic_stub.h"
#include "tests/distributed/grpc/fake_services.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string Text(const Status& status) { return std::string(status.message()); }

class ControlTest : public testing::Test {
 protected:
  ControlTest() {
    caller_.environment = host_.environment();
    Start("127.0.0.1:0");
    master_stub_ = NewGrpcMaster(server_->address(), caller_);
    worker_stub_ = GrpcWorkerFactory(caller_).Connect("/job:worker/task:3", server_->address());
  }

  void Start(const std::string& address) {
    GrpcServerOptions options;
    options.address = address;
    options.master = &master_;
    options.worker = &worker_;
    StatusOr<std::unique_ptr<GrpcServer>> server = GrpcServer::Start(options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  // A call of one of the stubs, to its end.
  template <typename Stub, typename Request, typename Response>
  Status Call(Stub& stub,
              void (Stub::*method)(const Request*, Response*, const CallOptions&, CallDone),
              const Request& request, Response* response, const CallOptions& options = {}) {
    Notification ended;
    Status result;
    (stub.*method)(&request, response, options, [&](Status status) {
      result = std::move(status);
      ended.Notify();
    });
    ended.Wait();
    return result;
  }
  template <typename Request, typename Response>
  Status Master(void (MasterInterface::*method)(const Request*, Response*, const CallOptions&,
                                                CallDone),
                const CallOptions& options = {}) {
    Response response;
    return Call(*master_stub_, method, Request(), &response, options);
  }
  template <typename Request, typename Response>
  Status Worker(void (WorkerInterface::*method)(const Request*, Response*, const CallOptions&,
                                                CallDone)) {
    Response response;
    return Call(*worker_stub_, method, Request(), &response);
  }
  double Seconds() const {
    return static_cast<double>(host_.environment().clock->NowNanos()) / 1e9;
  }
  // Polls, as the fakes tell nobody.
  bool Eventually(const std::function<bool()>& holds) {
    for (const double end = Seconds() + 30; Seconds() < end;) {
      if (holds()) return true;
      Notification none;
      none.WaitFor(absl::Milliseconds(2));
    }
    return false;
  }

  HostEnvironment host_;
  GrpcCallerOptions caller_;
  FakeMaster master_;
  FakeWorker worker_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<MasterInterface> master_stub_;
  std::unique_ptr<WorkerInterface> worker_stub_;
};

TEST_F(ControlTest, EveryCallOfTheMasterArrives) {
  using M = MasterInterface;
  EXPECT_TRUE(Master(&M::CreateSession).ok());
  EXPECT_TRUE(Master(&M::ExtendSession).ok());
  EXPECT_TRUE(Master(&M::RunStep).ok());
  EXPECT_TRUE(Master(&M::Prepare).ok());
  EXPECT_TRUE(Master(&M::RunPrepared).ok());
  EXPECT_TRUE(Master(&M::DescribeStep).ok());
  EXPECT_TRUE(Master(&M::CloseSession).ok());
  EXPECT_TRUE(Master(&M::ListDevices).ok());
  EXPECT_TRUE(Master(&M::Reset).ok());
  EXPECT_THAT(master_.calls(),
              ElementsAre("CreateSession", "ExtendSession", "RunStep", "Prepare", "RunPrepared",
                          "DescribeStep", "CloseSession", "ListDevices", "Reset"));
}

TEST_F(ControlTest, EveryCallOfTheWorkerArrives) {
  using W = WorkerInterface;
  EXPECT_TRUE(Worker(&W::GetStatus).ok());
  EXPECT_TRUE(Worker(&W::CreateSession).ok());
  EXPECT_TRUE(Worker(&W::DeleteSession).ok());
  EXPECT_TRUE(Worker(&W::RegisterPlan).ok());
  EXPECT_TRUE(Worker(&W::DeregisterPlan).ok());
  EXPECT_TRUE(Worker(&W::RunStep).ok());
  EXPECT_TRUE(Worker(&W::AbortStep).ok());
  EXPECT_TRUE(Worker(&W::Heartbeat).ok());
  EXPECT_TRUE(Worker(&W::Reset).ok());
  EXPECT_THAT(worker_.calls(),
              ElementsAre("GetStatus", "CreateSession", "DeleteSession", "RegisterPlan",
                          "DeregisterPlan", "RunStep", "AbortStep", "Heartbeat", "Reset"));
}

TEST_F(ControlTest, RequestsAndResponsesCarryTheirContent) {
  RunPreparedRequest request;
  request.set_step_handle(12);
  request.add_feed()->set_tensor_content(std::string(40 << 20, 'x'));  // ten times gRPC's default
  RunPreparedResponse response;
  ASSERT_TRUE(Call(*master_stub_, &MasterInterface::RunPrepared, request, &response).ok());
  EXPECT_EQ(response.step_id(), 12u);
  EXPECT_EQ(response.fetch(0).tensor_content(), request.feed(0).tensor_content());
}

TEST_F(ControlTest, ErrorsComeInTheBody) {
  master_.error = NotFound("no such session");
  CloseSessionResponse closed;
  EXPECT_TRUE(
      Call(*master_stub_, &MasterInterface::CloseSession, CloseSessionRequest(), &closed).ok());
  EXPECT_EQ(ToStatus(closed.status()), master_.error);

  CreateWorkerSessionRequest request;
  request.set_incarnation(~uint64_t{0});
  CreateWorkerSessionResponse created;
  EXPECT_TRUE(Call(*worker_stub_, &WorkerInterface::CreateSession, request, &created).ok());
  EXPECT_EQ(ToStatus(created.status()), Aborted("incarnation 18446744073709551615"));
}

TEST_F(ControlTest, TheTimeoutReachesTheHandlerAndEndsTheCall) {
  master_.set_hold(true);
  CallOptions options;
  options.timeout = absl::Milliseconds(300);
  const double start = Seconds();
  const Status status = Master(&MasterInterface::Reset, options);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Text(status), HasSubstr("Reset to " + server_->address()));
  EXPECT_GE(Seconds() - start, 0.29);
  EXPECT_LE(master_.last_timeout(), absl::Milliseconds(400));
  EXPECT_TRUE(Eventually([&] { return master_.cancellations().size() == 1; }));
}

TEST_F(ControlTest, CancellationReachesTheHandler) {
  worker_.set_hold(true);
  Cancellation cancellation;
  CallOptions options;
  options.cancellation = &cancellation;
  WorkerRunStepRequest request;
  WorkerRunStepResponse response;
  Notification ended;
  Status result;
  worker_stub_->RunStep(&request, &response, options, [&](Status status) {
    result = std::move(status);
    ended.Notify();
  });
  ASSERT_TRUE(Eventually([&] { return worker_.calls().size() == 1; }));
  cancellation.Cancel(Aborted("another worker has failed"));
  ended.Wait();
  EXPECT_EQ(result.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(Text(result), HasSubstr("another worker has failed"));
  EXPECT_THAT(Text(result), HasSubstr("/job:worker/task:3 at 127.0.0.1"));
  EXPECT_TRUE(Eventually([&] { return worker_.cancellations().size() == 1; }));

  // A call that is cancelled before it begins does not reach anyone.
  EXPECT_EQ(Master(&MasterInterface::Reset, options).code(), absl::StatusCode::kAborted);
  EXPECT_THAT(master_.calls(), SizeIs(0));
}

TEST_F(ControlTest, NobodyListens) {
  const std::string address = server_->address();
  server_ = nullptr;
  GrpcCallerOptions hasty = caller_;
  hasty.connect_timeout = absl::Milliseconds(500);
  const auto worker = GrpcWorkerFactory(hasty).Connect("/job:ps/task:1", address);
  HeartbeatResponse response;
  const double start = Seconds();
  const Status status = Call(*worker, &WorkerInterface::Heartbeat, HeartbeatRequest(), &response);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Text(status),
            "Heartbeat to /job:ps/task:1 at " + address + ": no connection within 500ms");
  EXPECT_GE(Seconds() - start, 0.45);
}

TEST_F(ControlTest, AServerThatStartsLateIsFound) {
  const std::string address = server_->address();
  server_ = nullptr;
  const auto master = NewGrpcMaster(address, caller_);
  ResetRequest request;
  ResetResponse response;
  Notification ended;
  Status result = Internal("not called");
  master->Reset(&request, &response, {}, [&](Status status) {
    result = std::move(status);
    ended.Notify();
  });
  EXPECT_FALSE(ended.WaitFor(absl::Milliseconds(300)));
  Start(address);
  ended.Wait();
  EXPECT_TRUE(result.ok()) << result;
}

TEST_F(ControlTest, ARestartedServerIsFoundAgain) {
  EXPECT_TRUE(Master(&MasterInterface::Reset).ok());
  const std::string address = server_->address();
  server_ = nullptr;
  Start(address);
  // The first call may still see the old connection's end.
  EXPECT_TRUE(Eventually([&] { return Master(&MasterInterface::Reset).ok(); }));
}

TEST_F(ControlTest, APortInUseIsNamed) {
  GrpcServerOptions options;
  options.address = server_->address();
  const Status status = GrpcServer::Start(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(Text(status), HasSubstr(server_->address()));
}

TEST_F(ControlTest, OnlyLoopbackUnlessAllowed) {
  for (const char* address :
       {"0.0.0.0:0", "[::]:0", "10.1.2.3:80", "example.com:80", "127.0.0.1.example.com:80"}) {
    GrpcServerOptions options;
    options.address = address;
    const Status status = GrpcServer::Start(options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << address;
    EXPECT_THAT(Text(status), HasSubstr(address));
  }
  GrpcServerOptions options;
  options.address = "0.0.0.0:0";
  options.allow_remote = true;
  EXPECT_TRUE(GrpcServer::Start(options).ok());
  options.address = "nonsense";
  EXPECT_EQ(GrpcServer::Start(options).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ControlTest, ShutdownEndsCallsInFlight) {
  master_.set_hold(true);
  constexpr int kCalls = 10;
  ResetRequest request;
  ResetResponse responses[kCalls];
  Status results[kCalls];
  std::atomic<int> ended{0};
  Notification all;
  for (int i = 0; i < kCalls; ++i) {
    master_stub_->Reset(&request, &responses[i], {}, [&, i](Status status) {
      results[i] = std::move(status);
      if (++ended == kCalls) all.Notify();
    });
  }
  ASSERT_TRUE(Eventually([&] { return master_.calls().size() == kCalls; }));
  const double start = Seconds();
  server_->Shutdown(absl::Milliseconds(100));
  EXPECT_LT(Seconds() - start, 10);
  all.Wait();
  for (const Status& result : results) EXPECT_FALSE(result.ok());
  EXPECT_THAT(master_.cancellations(), SizeIs(kCalls));
  server_->Shutdown(absl::Milliseconds(100));  // again: nothing
}

// Calls by hand, as a foreign client makes them: bytes in, bytes out.
class ForeignClientTest : public ControlTest {
 protected:
  struct Answer {
    grpc::Status status;
    std::string bytes;
  };

  Answer Send(const std::string& method, const std::string& request) {
    grpc::GenericStub stub(
        grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    const grpc::Slice slice(request);
    grpc::ByteBuffer in(&slice, 1);
    grpc::ByteBuffer out;
    Answer answer;
    Notification ended;
    stub.UnaryCall(&context, method, {}, &in, &out, [&](grpc::Status status) {
      answer.status = std::move(status);
      ended.Notify();
    });
    ended.Wait();
    std::vector<grpc::Slice> slices;
    if (out.Valid() && out.Dump(&slices).ok()) {
      for (const grpc::Slice& piece : slices) {
        answer.bytes.append(reinterpret_cast<const char*>(piece.begin()), piece.size());
      }
    }
    return answer;
  }
};

TEST_F(ForeignClientTest, SpeaksThePublicWireForm) {
  // CreateSessionRequest{target = 3: "grpc://h:1"} -> {session_handle = 1}
  Answer answer = Send("/tensorflow.MasterService/CreateSession", "\x1a\x0agrpc://h:1");
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_THAT(answer.bytes, HasSubstr("\x0a\x14handle of grpc://h:1"));

  // ExtendSessionRequest{current_graph_version = 3: 41} -> {new_graph_version = 4: 42}
  answer = Send("/tensorflow.MasterService/ExtendSession", "\x18\x29");
  EXPECT_THAT(answer.bytes, HasSubstr("\x20\x2a"));

  // RunStepRequest{session_handle = 1: "s", feed = 2: {name = 1: "x:0", tensor = 2: {dtype = 1:
  // 1, tensor_content = 4: 4 bytes}}, fetch = 3: "y:0", store_errors_in_response_body = 7: true,
  // request_id = 8: 5} -> {tensor = 1: {name = 1: "y:0", tensor = 2}}
  const std::string tensor = std::string("\x08\x01\x22\x04\x00\x00\x80\x3f", 8);
  answer = Send("/tensorflow.MasterService/RunStep",
                "\x0a\x01s\x12\x0f\x0a\x03x:0\x12\x08" + tensor + "\x1a\x03y:0\x38\x01\x40\x05");
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(answer.bytes, "\x0a\x0f\x0a\x03y:0\x12\x08" + tensor);

  EXPECT_TRUE(Send("/tensorflow.MasterService/ListDevices", "\x0a\x01s").status.ok());
  EXPECT_TRUE(Send("/tensorflow.MasterService/CloseSession", "\x0a\x01s").status.ok());
  EXPECT_TRUE(Send("/tensorflow.MasterService/Reset", "").status.ok());
  EXPECT_THAT(master_.calls(), ElementsAre("CreateSession", "ExtendSession", "RunStep",
                                           "ListDevices", "CloseSession", "Reset"));
}

TEST_F(ForeignClientTest, ErrorsAreWhereThatClientLooks) {
  master_.error = InvalidArgument("no node named 'y'");
  for (const char* method :
       {"CreateSession", "ExtendSession", "CloseSession", "ListDevices", "Reset"}) {
    const Answer answer = Send(std::string("/tensorflow.MasterService/") + method, "");
    EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << method;
    EXPECT_EQ(answer.status.error_message(), "no node named 'y'");
  }
  // RunStep: in the body if so asked: {status_code = 3: 3, status_error_message = 4}
  Answer answer = Send("/tensorflow.MasterService/RunStep", "\x38\x01");
  EXPECT_TRUE(answer.status.ok());
  EXPECT_EQ(answer.bytes, "\x18\x03\x22\x11no node named 'y'");
  answer = Send("/tensorflow.MasterService/RunStep", "");
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ForeignClientTest, WrongCallsAreRefused) {
  Answer answer = Send("/tensorflow.MasterService/PartialRunSetup", "");
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(answer.status.error_message(), HasSubstr("PartialRunSetup"));
  EXPECT_EQ(Send("/millrace.DataPlane/Stream", "").status.error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  answer = Send("/tensorflow.MasterService/RunStep", "\x0a\xff");
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(answer.status.error_message(), "the request is malformed");
  EXPECT_THAT(master_.calls(), SizeIs(0));
}

}  // namespace
}  // namespace millrace
