#include "distributed/device_proto.h"

namespace millrace {

void DeviceToProto(const DeviceInfo& device, DeviceAttributes* proto) {
  proto->set_name(device.name.ToString());
  proto->set_device_type(device.name.type.value_or(""));
  proto->set_memory_limit(device.memory_limit);
  proto->set_incarnation(device.incarnation);
  proto->set_physical_device_desc(device.description);
}

StatusOr<DeviceInfo> DeviceFromProto(const DeviceAttributes& proto) {
  DeviceInfo device;
  MR_ASSIGN_OR_RETURN(device.name, DeviceName::Parse(proto.name()));
  if (!device.name.IsFull()) {
    return InvalidArgument("'", proto.name(), "' is no full name of a device");
  }
  device.memory_limit = proto.memory_limit();
  device.incarnation = proto.incarnation();
  device.description = proto.physical_device_desc();
  return device;
}

}  // namespace millrace
