#include <functional>
#include <random>

#include "distributed/data_plane.h"
#include "gmock/gmock.h"
#include "tests/distributed/data_plane/cluster.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kSession = Collector::kSession;
constexpr uint64_t kPeerIncarnation = 5;

MessageKey Key(uint64_t step, uint32_t channel) { return {kSession, step, 0, channel}; }

DataPlaneOptions Tight() {
  DataPlaneOptions limits;
  limits.eager_window_bytes = 4096;
  limits.chunk_bytes = 1000;
  limits.credit_window_bytes = 2000;
  return limits;
}

// A peer that says what the test tells it to, over a stream that it opened or accepted.
class Peer final : public FrameStream::Handler,
                   public FrameHandler,
                   public FrameStreamAcceptor,
                   public std::enable_shared_from_this<Peer> {
 public:
  void Open(Cluster& cluster, int task) {
    stream_ = cluster.network.Connect(Cluster::Address(task), shared_from_this());
  }
  std::shared_ptr<FrameStream::Handler> Accept(std::shared_ptr<FrameStream> stream) override {
    stream_ = std::move(stream);
    return shared_from_this();
  }
  static Hello HelloTo(uint64_t incarnation) {
    Hello hello;
    hello.incarnation = kPeerIncarnation;
    hello.expected_incarnation = incarnation;
    hello.eager_window = 1 << 20;
    hello.task = "/job:peer/task:0";
    return hello;
  }
  void Send(const std::function<void(MessageBuilder&)>& add) {
    MessageBuilder builder;
    add(builder);
    SendRaw(builder.Build());
  }
  void SendRaw(Message message) { stream_->Write(std::move(message)); }
  void Close() { stream_->Close(Unavailable("closed by the test")); }

  void OnMessage(absl::Span<const absl::string_view> pieces) override {
    ASSERT_TRUE(ParseFrames(pieces, *this).ok());
  }
  void OnWritten() override {}
  void OnClosed(const Status& status) override {
    closed = status;
    stream_ = nullptr;
  }
  Status OnHello(const Hello&) override { return absl::OkStatus(); }
  Status OnTensor(const TensorHeader&, const Payload&) override { return absl::OkStatus(); }
  Status OnOffer(const TensorHeader&, uint64_t offer) override {
    offers.push_back(offer);
    return absl::OkStatus();
  }
  Status OnChunk(uint64_t, uint64_t, const Payload&) override { return absl::OkStatus(); }
  Status OnEnd(uint64_t offer) override {
    ends.push_back(offer);
    return absl::OkStatus();
  }
  Status OnCredit(uint64_t, uint64_t bytes) override {
    credit += bytes;
    return absl::OkStatus();
  }
  Status OnRelease(uint64_t bytes) override {
    released += bytes;
    return absl::OkStatus();
  }
  Status OnRefuse(uint64_t offer) override {
    refused.push_back(offer);
    return absl::OkStatus();
  }

  Status closed;
  uint64_t credit = 0;
  uint64_t released = 0;
  std::vector<uint64_t> offers, ends, refused;

 private:
  std::shared_ptr<FrameStream> stream_;
};

TensorHeader Header(uint64_t step, uint32_t channel, int64_t size) {
  return TensorHeader::Of(Key(step, channel), Bytes(size, channel));
}

class HostilePeerTest : public testing::Test {
 protected:
  HostilePeerTest() : cluster_(1, 1, Tight()) {
    EXPECT_TRUE(cluster_.plane(0).BeginStep(kSession, 1, &sink_, {link_}).ok());
    peer_->Open(cluster_, 0);
    Send([&](MessageBuilder& b) { b.AddHello(Peer::HelloTo(cluster_.incarnation(0))); });
  }

  void Send(const std::function<void(MessageBuilder&)>& add) {
    peer_->Send(add);
    cluster_.RunFor(absl::Seconds(1));
  }
  // That the peer is thrown out, that the step hears of it, and that nothing of it stays.
  void ExpectClosed(const std::string& why) {
    EXPECT_THAT(std::string(peer_->closed.message()), HasSubstr(why));
    ASSERT_THAT(sink_.downs, SizeIs(1));
    EXPECT_THAT(std::string(sink_.downs[0].message()), HasSubstr("/job:peer/task:0"));
    cluster_.plane(0).EndStep(kSession, 1);
    sink_.tensors.clear();
    cluster_.plane(0).EndSession(kSession);
    cluster_.ExpectNothingHeld();
    EXPECT_EQ(cluster_.memory(0).stats().bytes_in_use, 0);
  }

  Cluster cluster_;
  Collector sink_;
  std::shared_ptr<Peer> peer_ = std::make_shared<Peer>();
  const LinkId link_ = cluster_.plane(0).Link("/job:peer/task:0", "peer:1", kPeerIncarnation);
};

TEST_F(HostilePeerTest, RepeatsAreDropped) {
  Send([](MessageBuilder& b) {
    for (uint64_t mark : {1, 2}) b.AddTensor(Header(1, 9, 100), Bytes(100, mark));
    b.AddOffer(Header(1, 9, 5000), 1);
  });
  EXPECT_THAT(sink_.order, SizeIs(1));
  EXPECT_TRUE(IsBytes(sink_.Get(1, 9), 100, 1)) << "the first";
  EXPECT_THAT(peer_->refused, SizeIs(1));
  // Also of a step that has yet to begin.
  Send([](MessageBuilder& b) {
    for (uint64_t mark : {3, 4}) b.AddTensor(Header(2, 9, 100), Bytes(100, mark));
    b.AddEnd(1);
  });
  Collector later;
  ASSERT_TRUE(cluster_.plane(0).BeginStep(kSession, 2, &later, {link_}).ok());
  EXPECT_THAT(later.order, SizeIs(1));
  EXPECT_TRUE(IsBytes(later.Get(2, 9), 100, 3));
  EXPECT_TRUE(peer_->closed.ok());
  EXPECT_THAT(sink_.downs, IsEmpty());
}

TEST_F(HostilePeerTest, OverrunsTheEagerWindow) {
  Send([](MessageBuilder& b) { b.AddTensor(Header(2, 1, 3900), Bytes(3900, 1)); });
  EXPECT_TRUE(peer_->closed.ok());
  Send([](MessageBuilder& b) { b.AddTensor(Header(2, 2, 100), Bytes(100, 2)); });
  ExpectClosed("eager window of 4096 bytes is overrun");
}

TEST_F(HostilePeerTest, OffersWithoutEnd) {
  for (uint64_t offer = 1; offer <= 32; ++offer) {
    Send([&](MessageBuilder& b) { b.AddOffer(Header(2, offer, 5000), offer); });
  }
  EXPECT_TRUE(peer_->closed.ok());
  Send([](MessageBuilder& b) { b.AddOffer(Header(2, 40, 5000), 40); });
  ExpectClosed("overrun");
}

TEST_F(HostilePeerTest, ChunkBeyondItsCredit) {
  Send([](MessageBuilder& b) { b.AddOffer(Header(1, 1, 5000), 1); });
  EXPECT_EQ(peer_->credit, 2000u);
  Send([](MessageBuilder& b) { b.AddChunk(1, 0, 2001, Bytes(5000, 1)); });
  ExpectClosed("of 2000 granted");
}

TEST_F(HostilePeerTest, ChunkWithAHole) {
  Send([](MessageBuilder& b) { b.AddOffer(Header(1, 1, 5000), 1); });
  Send([](MessageBuilder& b) { b.AddChunk(1, 500, 100, Bytes(5000, 1)); });
  ExpectClosed("at 500 of offer 1");
}

TEST_F(HostilePeerTest, ChunkOfNoOffer) {
  Send([](MessageBuilder& b) { b.AddChunk(8, 0, 100, Bytes(5000, 1)); });
  ExpectClosed("unknown offer 8");
}

TEST_F(HostilePeerTest, OfferNumberAgain) {
  Send([](MessageBuilder& b) { b.AddOffer(Header(1, 1, 5000), 3); });
  Send([](MessageBuilder& b) { b.AddOffer(Header(1, 2, 5000), 3); });
  ExpectClosed("offer 3 after offer 3");
}

TEST_F(HostilePeerTest, EndOfNoOffer) {
  Send([](MessageBuilder& b) { b.AddEnd(3); });
  ExpectClosed("unknown offer 3");
}

TEST_F(HostilePeerTest, SaysWhatOnlyReceiversSay) {
  Send([](MessageBuilder& b) { b.AddCredit(1, 100); });
  ExpectClosed("unexpected CREDIT");
}

TEST_F(HostilePeerTest, StringsWithWildOffsets) {
  Tensor wild = Tensor::Zeros(DType::kInt64, {3});
  wild.mutable_data<int64_t>()[1] = 1000;
  Send([&](MessageBuilder& b) {
    TensorHeader header{Key(1, 1), DType::kString, Shape({1}), 24};
    b.AddTensor(header, wild);
  });
  ExpectClosed("strings are wrong");
}

TEST_F(HostilePeerTest, GoesInTheMiddleOfAnOffer) {
  Send([](MessageBuilder& b) { b.AddOffer(Header(1, 1, 5000), 1); });
  Send([](MessageBuilder& b) { b.AddChunk(1, 0, 900, Bytes(5000, 1)); });
  peer_->Close();
  cluster_.RunFor(absl::Seconds(1));
  ExpectClosed("");
}

TEST_F(HostilePeerTest, InventsSessions) {
  for (uint64_t i = 1; i <= 5000; ++i) {
    peer_->Send([&](MessageBuilder& b) {
      b.AddOffer(TensorHeader::Of({i, 1, 0, 1}, Bytes(100, 1)), i);
      b.AddEnd(i);
    });
    cluster_.RunFor(absl::Milliseconds(1));
  }
  EXPECT_TRUE(peer_->closed.ok());
  EXPECT_EQ(cluster_.plane(0).usage().steps, 1) << "only the one that has begun";
}

TEST_F(HostilePeerTest, TensorBeforeHello) {
  auto rude = std::make_shared<Peer>();
  rude->Open(cluster_, 0);
  rude->Send([](MessageBuilder& b) { b.AddTensor(Header(1, 1, 10), Bytes(10, 1)); });
  cluster_.RunFor(absl::Seconds(1));
  EXPECT_THAT(std::string(rude->closed.message()), HasSubstr("TENSOR before HELLO"));
  EXPECT_THAT(sink_.order, IsEmpty());
  EXPECT_THAT(sink_.downs, IsEmpty());
}

TEST_F(HostilePeerTest, OfAnotherProtocolVersionOrForAnotherIncarnation) {
  for (bool version : {true, false}) {
    auto peer = std::make_shared<Peer>();
    peer->Open(cluster_, 0);
    Hello hello = Peer::HelloTo(cluster_.incarnation(0) + (version ? 0 : 1));
    if (version) hello.protocol = 99;
    peer->Send([&](MessageBuilder& b) { b.AddHello(hello); });
    cluster_.RunFor(absl::Seconds(1));
    EXPECT_EQ(peer->closed.code(),
              version ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kAborted);
  }
}

// The other side: a receiver that breaks the rules.
class HostileReceiverTest : public testing::Test {
 protected:
  HostileReceiverTest() : cluster_(1, 1, Tight()) {
    cluster_.network.Listen("peer:1", peer_.get());
    const LinkId link = cluster_.plane(0).Link("/job:peer/task:0", "peer:1", kPeerIncarnation);
    EXPECT_TRUE(cluster_.plane(0).BeginStep(kSession, 1, &sink_, {link}).ok());
    cluster_.plane(0).Push(link, Key(1, 1), Bytes(100'000, 1));
    cluster_.RunFor(absl::Seconds(1));
  }
  void Answer(const std::function<void(MessageBuilder&)>& add, bool hello_first = true) {
    if (hello_first) {
      peer_->Send([&](MessageBuilder& b) { b.AddHello(Peer::HelloTo(cluster_.incarnation(0))); });
      cluster_.RunFor(absl::Seconds(1));
    }
    peer_->Send(add);
    cluster_.RunFor(absl::Seconds(1));
  }
  void ExpectDown(absl::StatusCode code, const std::string& why) {
    ASSERT_THAT(sink_.downs, SizeIs(1));
    EXPECT_EQ(sink_.downs[0].code(), code);
    EXPECT_THAT(std::string(sink_.downs[0].message()), HasSubstr(why));
    EXPECT_EQ(cluster_.plane(0).usage().queued_tensors, 0);
  }

  Cluster cluster_;
  Collector sink_;
  std::shared_ptr<Peer> peer_ = std::make_shared<Peer>();
};

TEST_F(HostileReceiverTest, GrantsTooMuch) {
  Answer([](MessageBuilder& b) { b.AddCredit(1, 100'001); });
  ExpectDown(absl::StatusCode::kInternal, "has 100000 left");
}

TEST_F(HostileReceiverTest, ReleasesTooMuch) {
  Answer([](MessageBuilder& b) { b.AddRelease(1000); });
  ExpectDown(absl::StatusCode::kInternal, "a release of 1000 bytes, of 128 in use");
}

TEST_F(HostileReceiverTest, HasNoWindow) {
  Hello hello = Peer::HelloTo(cluster_.incarnation(0));
  hello.eager_window = -1;
  Answer([&](MessageBuilder& b) { b.AddHello(hello); }, /*hello_first=*/false);
  ExpectDown(absl::StatusCode::kInternal, "eager window of -1 bytes");
}

TEST_F(HostileReceiverTest, RefusesWhatWasOffered) {
  Answer([](MessageBuilder& b) { b.AddRefuse(1); });
  EXPECT_THAT(sink_.downs, IsEmpty());
  EXPECT_THAT(peer_->ends, testing::ElementsAre(1));
  EXPECT_EQ(cluster_.plane(0).usage().queued_tensors, 0);
  // Numbers of nothing are ignored: they may cross with an end.
  Answer(
      [](MessageBuilder& b) {
        b.AddRefuse(1);
        b.AddCredit(1, 7);
        b.AddCredit(100, 7);
      },
      /*hello_first=*/false);
  EXPECT_THAT(sink_.downs, IsEmpty());
}

TEST_F(HostileReceiverTest, NeverSaysHello) {
  cluster_.RunFor(absl::Seconds(10));
  ExpectDown(absl::StatusCode::kUnavailable, "no connection within 10s");
}

// Bytes flipped, cut and added in streams of well-formed messages, by seed.
TEST(HostileBytesTest, NeverHarm) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    Cluster cluster(1, seed, Tight());
    Collector sink;
    ASSERT_TRUE(cluster.plane(0).BeginStep(kSession, 1, &sink, {}).ok());
    auto peer = std::make_shared<Peer>();
    peer->Open(cluster, 0);
    peer->Send([&](MessageBuilder& b) { b.AddHello(Peer::HelloTo(cluster.incarnation(0))); });
    cluster.RunFor(absl::Seconds(1));
    for (uint64_t i = 1; i < 50 && peer->closed.ok(); ++i) {
      MessageBuilder builder;
      builder.AddTensor(Header(1 + random() % 2, i, 50), Bytes(50, 1));
      builder.AddOffer(Header(1, 100 + i, 1000), i);
      if (random() % 2 == 0) builder.AddChunk(i, 0, 1000, Bytes(1000, 1));
      if (random() % 2 == 0) builder.AddEnd(i);
      Message message = builder.Build();
      for (uint64_t flips = random() % 3; flips > 0; --flips) {
        message.header[random() % message.header.size()] = static_cast<char>(random());
      }
      if (random() % 20 == 0) message.header.resize(random() % message.header.size());
      peer->SendRaw(std::move(message));
      cluster.RunFor(absl::Seconds(1));
    }
    if (peer->closed.ok()) peer->Close();
    cluster.RunFor(absl::Seconds(1));
    cluster.plane(0).EndStep(kSession, 1);
    sink.tensors.clear();
    cluster.plane(0).EndSession(kSession);
    EXPECT_EQ(cluster.plane(0).usage().eager_held, 0);
    EXPECT_EQ(cluster.memory(0).stats().bytes_in_use, 0) << "seed " << seed;
  }
}

}  // namespace
}  // namespace millrace
