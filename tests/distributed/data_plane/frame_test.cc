#include "distributed/frame.h"

#include <random>

#include "gmock/gmock.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Flatten(const Message& message) {
  std::string bytes = message.header;
  for (const MessagePart& part : message.payloads)
    bytes.append(part.bytes.data(), part.bytes.size());
  return bytes;
}

// Writes down what it hears.
class Recorder final : public FrameHandler {
 public:
  Status OnHello(const Hello& hello) override {
    heard.push_back(StrCat("hello ", hello.protocol, " ", hello.incarnation, " ",
                           hello.expected_incarnation, " ", hello.eager_window, " ", hello.task,
                           " ", hello.build_version));
    return absl::OkStatus();
  }
  Status OnTensor(const TensorHeader& header, const Payload& payload) override {
    std::string bytes(payload.size(), '?');
    payload.CopyTo(bytes.data());
    heard.push_back(StrCat("tensor ", Describe(header), " '", bytes, "'"));
    return absl::OkStatus();
  }
  Status OnOffer(const TensorHeader& header, uint64_t offer) override {
    heard.push_back(StrCat("offer ", Describe(header), " #", offer));
    return absl::OkStatus();
  }
  Status OnChunk(uint64_t offer, uint64_t offset, const Payload& payload) override {
    std::string bytes(payload.size(), '?');
    payload.CopyTo(bytes.data());
    heard.push_back(StrCat("chunk #", offer, " at ", offset, " '", bytes, "'"));
    return absl::OkStatus();
  }
  Status OnEnd(uint64_t offer) override { return Hear("end #", offer); }
  Status OnCredit(uint64_t offer, uint64_t bytes) override {
    return Hear(StrCat("credit #", offer, " "), bytes);
  }
  Status OnRelease(uint64_t bytes) override { return Hear("release ", bytes); }
  Status OnRefuse(uint64_t offer) override { return Hear("refuse #", offer); }

  std::vector<std::string> heard;

 private:
  static std::string Describe(const TensorHeader& header) {
    const MessageKey& key = header.key;
    return StrCat(key.session, ".", key.step, ".", key.frame, ".", key.channel, " ",
                  header.dtype == DType::kInvalid ? "empty" : Name(header.dtype),
                  header.shape.ToString(), " ", header.size);
  }
  Status Hear(absl::string_view what, uint64_t number) {
    heard.push_back(StrCat(what, number));
    return absl::OkStatus();
  }
};

Status Parse(const std::string& bytes, FrameHandler& handler) {
  const absl::string_view piece = bytes;
  return ParseFrames({&piece, 1}, handler);
}

Message Everything() {
  MessageBuilder builder;
  Hello hello;
  hello.incarnation = ~uint64_t{0};
  hello.expected_incarnation = 2;
  hello.eager_window = 3;
  hello.task = "/job:ps/task:0";
  hello.build_version = "1.0";
  builder.AddHello(hello);
  const Tensor bytes = Tensor::Of<uint8_t>({5}, {'h', 'e', 'l', 'l', 'o'});
  builder.AddTensor(TensorHeader::Of({1, 2, 3, 4}, bytes), bytes);
  builder.AddTensor(TensorHeader::Of({1, 2, 3, 5}, Tensor()), Tensor());
  builder.AddOffer(TensorHeader::Of({1, 2, 0, 6}, Tensor::Zeros(DType::kFloat, {2, 3})), 7);
  builder.AddChunk(7, 1, 3, bytes);
  builder.AddEnd(8);
  builder.AddCredit(9, 10);
  builder.AddRelease(11);
  builder.AddRefuse(12);
  EXPECT_EQ(builder.payload_size(), 8u);
  Message message = builder.Build();
  EXPECT_TRUE(builder.empty());
  return message;
}

TEST(FrameTest, RoundTripInPiecesOfAnySize) {
  const std::string bytes = Flatten(Everything());
  EXPECT_EQ(Everything().size(), bytes.size());
  for (size_t size : {size_t{1}, size_t{2}, size_t{3}, size_t{7}, size_t{50}, bytes.size()}) {
    std::vector<absl::string_view> pieces;
    for (size_t i = 0; i < bytes.size(); i += size) {
      pieces.push_back(absl::string_view(bytes).substr(i, size));
      pieces.push_back("");
    }
    Recorder recorder;
    ASSERT_TRUE(ParseFrames(pieces, recorder).ok());
    EXPECT_THAT(recorder.heard,
                ElementsAre("hello 1 18446744073709551615 2 3 /job:ps/task:0 1.0",
                            "tensor 1.2.3.4 uint8[5] 5 'hello'", "tensor 1.2.3.5 empty[] 0 ''",
                            "offer 1.2.0.6 float[2,3] 24 #7", "chunk #7 at 1 'ell'", "end #8",
                            "credit #9 10", "release 11", "refuse #12"));
  }
}

TEST(FrameTest, EachFramesSizeIsWhatItAddsToTheMessage) {
  const auto size_of = [](const std::function<void(MessageBuilder&)>& add) {
    MessageBuilder builder;
    const auto empty = static_cast<int64_t>(builder.header_size());
    add(builder);
    return static_cast<int64_t>(builder.Build().size()) - empty;
  };
  for (const Tensor& tensor :
       {Tensor(), Tensor::Zeros(DType::kFloat, {}), Tensor::Zeros(DType::kUint8, {2, 3, 5, 0}),
        Tensor::Zeros(DType::kDouble, {7, 9})}) {
    const TensorHeader header = TensorHeader::Of({1, 2, 3, 4}, tensor);
    EXPECT_EQ(TensorFrameSize(header),
              size_of([&](MessageBuilder& b) { b.AddTensor(header, tensor); }));
    EXPECT_EQ(OfferFrameSize(header), size_of([&](MessageBuilder& b) { b.AddOffer(header, 9); }));
  }
  const Tensor bytes = Tensor::Zeros(DType::kUint8, {100});
  EXPECT_EQ(ChunkFrameSize(40), size_of([&](MessageBuilder& b) { b.AddChunk(9, 50, 40, bytes); }));
}

TEST(FrameTest, PayloadsAreNotCopied) {
  const Message message = Everything();
  ASSERT_EQ(message.payloads.size(), 2u);
  EXPECT_EQ(message.payloads[0].bytes.data(), message.payloads[0].owner.raw_data());
  EXPECT_TRUE(message.payloads[0].owner.SharesBufferWith(message.payloads[1].owner));
}

TEST(FrameTest, EveryTruncationIsRefused) {
  const std::string bytes = Flatten(Everything());
  for (size_t size = 0; size < bytes.size(); ++size) {
    Recorder recorder;
    EXPECT_EQ(Parse(bytes.substr(0, size), recorder).code(), absl::StatusCode::kInvalidArgument);
  }
  Recorder recorder;
  EXPECT_THAT(std::string(Parse(bytes + "x", recorder).message()), HasSubstr("belong to no frame"));
}

// A message of one frame whose header bytes the test makes.
Status ParseHeader(const std::string& header) {
  std::string bytes(4, '\0');
  for (int i = 0; i < 4; ++i) bytes[i] = static_cast<char>(header.size() >> (8 * i));
  Recorder recorder;
  return Parse(bytes + header, recorder);
}

std::string TensorFrame(int kind, int dtype, std::vector<int64_t> dims, uint64_t size,
                        int rank = -1) {
  std::string out;
  out.push_back(static_cast<char>(kind));
  out.push_back(static_cast<char>(dtype));
  out.push_back(static_cast<char>(rank < 0 ? dims.size() : rank));
  out.append(24, '\1');
  const auto append = [&](uint64_t number) {
    for (int i = 0; i < 8; ++i) out.push_back(static_cast<char>(number >> (8 * i)));
  };
  for (int64_t dim : dims) append(dim);
  append(size);
  if (kind == 3) append(1);
  return out;
}

TEST(FrameTest, WrongTensorsAreRefusedByWhatIsWrong) {
  EXPECT_TRUE(ParseHeader(TensorFrame(3, 1, {2, 2}, 16)).ok());
  const auto message = [](const std::string& header) {
    return std::string(ParseHeader(header).message());
  };
  EXPECT_THAT(message(TensorFrame(3, 1, {2, 2}, 17)), HasSubstr("17 bytes do not make a tensor"));
  EXPECT_THAT(message(TensorFrame(3, 200, {}, 4)), HasSubstr("unknown dtype 200"));
  EXPECT_THAT(message(TensorFrame(3, 1, std::vector<int64_t>(9, 1), 4)), HasSubstr("rank 9"));
  EXPECT_THAT(message(TensorFrame(3, 1, {}, 4, 255)), HasSubstr("rank 255"));
  EXPECT_THAT(message(TensorFrame(3, 1, {-1}, 4)), HasSubstr("negative"));
  EXPECT_THAT(message(TensorFrame(3, 1, {int64_t{1} << 62, 8}, 4)), HasSubstr("too many elements"));
  EXPECT_THAT(message(TensorFrame(3, 1, {int64_t{1} << 55}, uint64_t{1} << 57)),
              HasSubstr("do not make"));
  EXPECT_THAT(message(TensorFrame(3, 7, {3}, 31)), HasSubstr("do not make"));  // 4 offsets: 32
  EXPECT_THAT(message(TensorFrame(3, 20, {}, 0)), HasSubstr("do not make"));   // a resource
  EXPECT_THAT(message(TensorFrame(3, 0, {}, 4)), HasSubstr("do not make"));
  EXPECT_THAT(message(TensorFrame(2, 1, {}, 4)), HasSubstr("payload of 4 bytes where 0 are left"));
  EXPECT_THAT(message(std::string("\x63")), HasSubstr("unknown frame 99"));
  EXPECT_THAT(message(std::string("\x01") + std::string(40, '\0')), HasSubstr("not a data stream"));
}

TEST(FrameTest, TheHandlersErrorEndsTheParse) {
  FrameHandler refuses_all;
  EXPECT_EQ(Parse(Flatten(Everything()), refuses_all), InvalidArgument("unexpected HELLO"));
}

TEST(FrameTest, MutationsNeverReadOutside) {
  const std::string good = Flatten(Everything());
  std::mt19937_64 random(1);
  for (int i = 0; i < 50'000; ++i) {
    std::string bytes = good;
    for (uint64_t flips = 1 + random() % 8; flips > 0; --flips) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    bytes.resize(random() % (bytes.size() + 1));
    bytes.shrink_to_fit();
    Recorder recorder;
    Parse(bytes, recorder).IgnoreError();
  }
}

}  // namespace
}  // namespace millrace
