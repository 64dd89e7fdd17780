// Two clients, each with a session of its own, over the same variables.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "python_free_api/millrace.h"
#include "tests/cluster/cluster_harness.h"

namespace millrace {
namespace {

// A program with one counter on the ps: every client builds the same.
class Client {
 public:
  static StatusOr<std::unique_ptr<Client>> Attach(const std::string& target,
                                                  const std::string& spec = "") {
    auto client = std::make_unique<Client>();
    MR_ASSIGN_OR_RETURN(client->runtime_, Runtime::Create());
    GraphBuilder b(client->runtime_->ops());
    {
      auto scope = b.DeviceScope("/job:ps/task:0");
      Value counter = VariableHandle(b, "counter", DType::kInt64, Shape());
      client->set_ = Assign(counter, Scalar(b, 0, DType::kInt64)).name();
      client->read_ = ReadVariable(counter).name();
      client->add_ = AssignAdd(counter, Scalar(b, 1, DType::kInt64)).name();
    }
    SessionOptions options;
    options.target = target;
    options.cluster = spec;
    MR_ASSIGN_OR_RETURN(client->session_, client->runtime_->OpenSession(b, options));
    return client;
  }

  Status Set() { return RunTarget(set_); }
  Status Add() { return RunTarget(add_); }
  StatusOr<int64_t> Read() {
    StepSignature signature;
    signature.fetches = {read_};
    MR_ASSIGN_OR_RETURN(std::shared_ptr<PreparedStep> step, session_->Prepare(signature));
    MR_ASSIGN_OR_RETURN(RunResult result, session_->Run(*step, {}));
    return result.fetches[0].data<int64_t>()[0];
  }
  Session& session() { return *session_; }

 private:
  Status RunTarget(const std::string& target) {
    StepSignature signature;
    signature.targets = {target};
    MR_ASSIGN_OR_RETURN(std::shared_ptr<PreparedStep> step, session_->Prepare(signature));
    return session_->Run(*step, {}).status();
  }

  std::unique_ptr<Runtime> runtime_;
  std::string set_;
  std::string read_;
  std::string add_;
  std::unique_ptr<Session> session_;
};

TEST(AttachTest, TwoClientsShareVariablesAndNothingElse) {
  const auto cluster = HandStartedCluster::Start({{"ps", 1}, {"worker", 2}});
  ASSERT_NE(cluster, nullptr);
  // Through different masters.
  StatusOr<std::unique_ptr<Client>> first = Client::Attach(cluster->target("worker", 0));
  ASSERT_EQ(first.status(), Status());
  StatusOr<std::unique_ptr<Client>> second = Client::Attach(cluster->target("worker", 1));
  ASSERT_EQ(second.status(), Status());

  const Status unset = (*second)->Read().status();
  EXPECT_FALSE(unset.ok()) << "an uninitialised variable was read";
  ASSERT_EQ((*first)->Set(), Status());
  for (int64_t i = 0; i < 10; ++i) {
    ASSERT_EQ((i % 2 == 0 ? *first : *second)->Add(), Status());
    const StatusOr<int64_t> seen = (i % 2 == 0 ? *second : *first)->Read();
    ASSERT_EQ(seen.status(), Status());
    EXPECT_EQ(*seen, i + 1);
  }

  // A client that goes leaves the variables, and the other's session.
  EXPECT_EQ((*first)->session().Close(), Status());
  first->reset();
  ASSERT_EQ((*second)->Add(), Status());
  StatusOr<std::unique_ptr<Client>> third = Client::Attach(cluster->target("ps", 0));
  ASSERT_EQ(third.status(), Status());
  const StatusOr<int64_t> seen = (*third)->Read();
  ASSERT_EQ(seen.status(), Status());
  EXPECT_EQ(*seen, 11);

  // Reset is for all.
  ASSERT_EQ((*third)->session().Reset({}), Status());
  EXPECT_FALSE((*second)->Read().ok());
  EXPECT_EQ((*second)->Set(), Status());
  EXPECT_EQ(*(*third)->Read(), 0);
}

// Servers that know nothing of each other until a client says who they are.
TEST(AttachTest, TheSpecComesWithTheSession) {
  const std::string folder = NewFolder();
  std::vector<std::unique_ptr<ServerProcess>> servers;
  std::vector<std::string> addresses;
  for (const char* name : {"a", "b"}) {
    servers.push_back(ServerProcess::Start(folder, name, {}));
    ASSERT_NE(servers.back(), nullptr);
    StatusOr<std::string> address = servers.back()->WaitReady();
    ASSERT_EQ(address.status(), Status());
    addresses.push_back(*std::move(address));
  }
  const std::string spec = StrCat("ps=", addresses[0], ";worker=", addresses[1]);
  StatusOr<std::unique_ptr<Client>> first = Client::Attach(StrCat("grpc://", addresses[1]), spec);
  ASSERT_EQ(first.status(), Status());
  ASSERT_EQ((*first)->Set(), Status());
  ASSERT_EQ((*first)->Add(), Status());
  StatusOr<std::unique_ptr<Client>> second = Client::Attach(StrCat("grpc://", addresses[0]), spec);
  ASSERT_EQ(second.status(), Status());
  EXPECT_EQ(*(*second)->Read(), 1);
}

}  // namespace
}  // namespace millrace
