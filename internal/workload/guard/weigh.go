package guard

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/api/resource"
)

// scale adds up the memory of a message before it is decoded: two bytes can become a kilobyte.
// It also refuses what is dangerous to decode or to show.
type scale struct {
	left int64 // bytes of memory
}

var (
	errMalformed = breaks("the cluster sends data that is not a Kubernetes object")
	errTooLarge  = errors.New("it takes too much memory")
)

// longestName and longestNumber bound names and quantities.
const longestName, longestNumber = 1024, 64

type field struct {
	of   reflect.Type
	name string
}

// layouts caches the fields of types by their number in protobuf.
var layouts sync.Map

// layout returns the fields of a struct, or of an entry of a map, by their number.
func layout(t reflect.Type) map[protowire.Number]field {
	if known, ok := layouts.Load(t); ok {
		return known.(map[protowire.Number]field)
	}
	fields := map[protowire.Number]field{}
	if t.Kind() == reflect.Map {
		fields[1], fields[2] = field{of: t.Key()}, field{of: t.Elem()}
	} else {
		for i := range t.NumField() {
			_, tag, _ := strings.Cut(t.Field(i).Tag.Get("protobuf"), ",")
			tag, _, _ = strings.Cut(tag, ",")
			if number, err := strconv.ParseInt(tag, 10, 32); err == nil {
				name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
				fields[protowire.Number(number)] = field{t.Field(i).Type, name}
			}
		}
	}
	layouts.Store(t, fields)
	return fields
}

// message weighs what a struct, or an entry of a map, refers to, without itself.
func (s *scale) message(t reflect.Type, data []byte) error {
	fields := layout(t)
	for len(data) > 0 {
		number, wire, n := protowire.ConsumeTag(data)
		if n < 0 || wire == protowire.StartGroupType {
			return errMalformed
		}
		var value []byte
		data = data[n:]
		if wire == protowire.BytesType {
			value, n = protowire.ConsumeBytes(data)
		} else {
			n = protowire.ConsumeFieldValue(number, wire, data)
		}
		if n < 0 {
			return errMalformed
		}
		data = data[n:]
		at, known := fields[number]
		switch {
		case t == reflect.TypeFor[resource.Quantity]() && !fitNumber(string(value)):
			return breaks("the cluster sends a quantity that is out of bounds: of more than %d characters or with an exponent of more than 2 digits", longestNumber)
		case !known: // The decoder skips it.
		default:
			if err := s.field(at, value); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *scale) field(at field, data []byte) error {
	t, bytes := at.of, uintptr(0)
	if t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 {
		t = t.Elem()
		bytes += 2 * t.Size() // It grows to twice of what it needs.
		if k := t.Kind(); k >= reflect.Bool && k <= reflect.Float64 {
			bytes += 16 * uintptr(len(data)) // Numbers may be packed.
		}
	}
	switch t.Kind() {
	case reflect.Pointer:
		t = t.Elem()
		bytes += t.Size()
	case reflect.Map:
		bytes += 2*(t.Key().Size()+t.Elem().Size()) + 16
	}
	nested := t.Kind() == reflect.Struct || t.Kind() == reflect.Map
	if !nested {
		bytes += uintptr(len(data))
	}
	switch s.left -= int64(bytes); {
	case s.left < 0:
		return errTooLarge
	case nested:
		return s.message(t, data)
	case shown[at.name] && !fitName(at.name, data):
		return breaks("the cluster sends an object with a %s that has more than %d bytes or control characters", at.name, longestName)
	}
	return nil
}

// fitNumber reports whether a quantity is parsed quickly: 1e-1000000000 takes minutes.
func fitNumber(number string) bool {
	_, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	return len(number) <= longestNumber && len(strings.TrimLeft(exponent, "+-0")) <= 2
}

// shown holds the fields that messages quote.
var shown = map[string]bool{
	"name": true, "namespace": true, "nodeName": true, "providerID": true, "uid": true, "volumeName": true,
	"claimName": true, "persistentVolumeName": true, "attacher": true, "driver": true, "volumeHandle": true, "kind": true,
	"resourceVersion": true, "continue": true, "devicePath": true,
}

// fitName reports whether the text of a field may be shown.
func fitName(name string, text []byte) bool {
	if len(text) > longestName {
		return name == "continue" && len(text) <= 4*longestName
	}
	return utf8.Valid(text) && !strings.ContainsFunc(string(text), func(r rune) bool { return !unicode.IsPrint(r) })
}
