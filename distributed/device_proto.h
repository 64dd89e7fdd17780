#ifndef DISTRIBUTED_DEVICE_PROTO_H_
#define DISTRIBUTED_DEVICE_PROTO_H_

#include "core/framework/device.h"
#include "core/framework/device_attributes.pb.h"

namespace millrace {

// Between what is known of a device and its wire form.
void DeviceToProto(const DeviceInfo& device, DeviceAttributes* proto);
// InvalidArgument for a name that is not a full one.
StatusOr<DeviceInfo> DeviceFromProto(const DeviceAttributes& proto);

}  // namespace millrace

#endif  // DISTRIBUTED_DEVICE_PROTO_H_
