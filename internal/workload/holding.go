package workload

import (
	"hash/maphash"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/kube"
)

// perByte is how many bytes of memory an object takes for each byte that it has
// in protobuf.
const perByte = 3

var keySeed = maphash.MakeSeed()

// holding is the key and the weight of an object in a cache. The kind is a number,
// because objects from a cache do not know their own.
func holding(kind int, object client.Object) (key uint64, weight int64) {
	var hash maphash.Hash
	hash.SetSeed(keySeed)
	for _, part := range []string{object.GetNamespace(), object.GetName()} {
		_, _ = hash.WriteString(part)
		_ = hash.WriteByte(0)
	}
	_ = hash.WriteByte(byte(kind))
	weight = objectBytes
	if sized, ok := object.(interface{ Size() int }); ok {
		weight += perByte * int64(sized.Size())
	}
	return hash.Sum64(), weight
}

// count has every object counted before it gets into a cache.
func (a *account) count(options *cache.Options, breaks func(error)) {
	kinds := kube.WorkloadKinds()
	for like, by := range options.ByObject {
		kind := slices.IndexFunc(kinds, func(known client.Object) bool { return sameType(known, like) })
		if kind >= 0 {
			by.Transform = a.counting(kind, by.Transform, breaks)
			options.ByObject[like] = by
		}
	}
}

func (a *account) counting(kind int, strip toolscache.TransformFunc, breaks func(error)) toolscache.TransformFunc {
	return func(in any) (any, error) {
		out, err := strip(in)
		if object, ok := out.(client.Object); ok && err == nil {
			if over := a.keep(holding(kind, object)); over != nil {
				breaks(over)
			}
		}
		return out, err
	}
}

// watches have the account follow what a cache holds. The objects of a change are
// counted again: one that went and came back was taken off after it was put on.
func (a *account) watches() []watch {
	var all []watch
	for kind, like := range kube.WorkloadKinds() {
		all = append(all, watch{like, func(_ types.NamespacedName, old, now client.Object) {
			if now != nil {
				_ = a.keep(holding(kind, now))
				return
			}
			key, _ := holding(kind, old)
			a.drop(key)
		}})
	}
	return all
}
