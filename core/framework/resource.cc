#include "core/framework/resource.h"

#include <algorithm>
#include <set>

namespace millrace {

StatusOr<std::shared_ptr<Variable>> ResourceStore::LookupOrCreateVariable(
    absl::string_view container, absl::string_view name, DType dtype, const PartialShape& shape) {
  MR_ASSIGN_OR_RETURN(std::shared_ptr<Variable> variable,
                      LookupOrCreate<Variable>(container, name, [&] {
                        return std::make_shared<Variable>(std::string(name), dtype, shape);
                      }));
  if (variable->dtype() != dtype || !variable->shape().IsCompatibleWith(shape)) {
    return InvalidArgument("variable '", name, "' in container '", container, "' is ",
                           Name(variable->dtype()), variable->shape().ToString(),
                           ", but is asked for as ", Name(dtype), shape.ToString(),
                           "; use another name or container, or reset this one");
  }
  return variable;
}

StatusOr<std::shared_ptr<Resource>> ResourceStore::LookupOrCreateAny(
    absl::string_view container, absl::string_view name,
    absl::FunctionRef<std::shared_ptr<Resource>()> make) {
  Key key(container, name);
  MutexLock lock(mutex_);
  const auto found = resources_.find(key);
  if (found != resources_.end()) return found->second;
  std::shared_ptr<Resource> made = make();
  if (made == nullptr) {
    return Internal("resource '", name, "' in container '", container, "' could not be made");
  }
  resources_.emplace(std::move(key), made);
  return made;
}

std::shared_ptr<Resource> ResourceStore::Lookup(absl::string_view container,
                                                absl::string_view name) const {
  MutexLock lock(mutex_);
  const auto found = resources_.find(Key(container, name));
  return found == resources_.end() ? nullptr : found->second;
}

void ResourceStore::Reset(absl::Span<const std::string> containers) {
  const std::set<std::string> named(containers.begin(), containers.end());
  const auto dropped = [&](const std::string& container) {
    return named.empty() || named.count(container) > 0;
  };
  // Destroyed after the lock is free, as a resource's destructor may do anything.
  std::vector<std::shared_ptr<Resource>> removed;
  MutexLock lock(mutex_);
  for (auto it = resources_.begin(); it != resources_.end();) {
    if (!dropped(it->first.first)) {
      ++it;
      continue;
    }
    it->second->detached_.store(true, std::memory_order_release);
    removed.push_back(std::move(it->second));
    it = resources_.erase(it);
  }
  for (auto it = random_counters_.begin(); it != random_counters_.end();) {
    it = dropped(it->first) ? random_counters_.erase(it) : std::next(it);
  }
}

std::vector<std::string> ResourceStore::List() const {
  std::vector<std::string> names;
  {
    MutexLock lock(mutex_);
    for (const auto& [key, resource] : resources_) {
      names.push_back(StrCat(key.first, "/", key.second));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

uint64_t ResourceStore::random_counter(absl::string_view container) const {
  MutexLock lock(mutex_);
  const auto found = random_counters_.find(std::string(container));
  return found == random_counters_.end() ? 0 : found->second;
}

void ResourceStore::set_random_counter(absl::string_view container, uint64_t value) {
  MutexLock lock(mutex_);
  random_counters_[std::string(container)] = value;
}

}  // namespace millrace
