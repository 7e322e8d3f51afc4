package workload

import (
	"encoding/binary"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"
)

// scale weighs what becomes of a message when it is decoded, before that is done:
// two bytes of a message can become a kilobyte of memory. It also refuses what
// is dangerous to decode or to show.
type scale struct {
	// left is how many bytes of memory there may still be.
	left int64
	// over is returned if there are more.
	over error
}

var errMalformed = breaks("the cluster sends what is no Kubernetes object")

const (
	// longestName is how long names may be, longestNumber the text of a quantity.
	longestName, longestNumber = 1024, 64
	// varint, fixed64, text and fixed32 are the wire types of protobuf.
	varint, fixed64, text, fixed32 = 0, 1, 2, 5
)

// field is a field of a type by its number in protobuf.
type field struct {
	of   reflect.Type
	name string
}

// layouts has the fields of types.
var layouts sync.Map

// layout finds the fields of a struct by the tags that its decoder was made of.
func layout(t reflect.Type) map[uint64]field {
	if known, ok := layouts.Load(t); ok {
		return known.(map[uint64]field)
	}
	fields := map[uint64]field{}
	for i := range t.NumField() {
		parts := strings.Split(t.Field(i).Tag.Get("protobuf"), ",")
		if len(parts) < 2 {
			continue
		}
		if number, err := strconv.ParseUint(parts[1], 10, 32); err == nil {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			fields[number] = field{t.Field(i).Type, name}
		}
	}
	layouts.Store(t, fields)
	return fields
}

// token is one field of a message on the wire; value is nil unless it is a text.
type token struct {
	number uint64
	wire   uint64
	value  []byte
}

// takeToken takes the first field off a message.
func takeToken(data []byte) (t token, rest []byte, ok bool) {
	key, n := binary.Uvarint(data)
	if n <= 0 {
		return t, nil, false
	}
	t, rest = token{number: key >> 3, wire: key & 7}, data[n:]
	skip := uint64(0)
	switch t.wire {
	case varint:
		_, n = binary.Uvarint(rest)
		skip = uint64(max(n, 0))
		ok = n > 0
	case fixed64:
		skip, ok = 8, true
	case fixed32:
		skip, ok = 4, true
	case text:
		length, n := binary.Uvarint(rest)
		if n <= 0 || length > uint64(len(rest)-n) {
			return t, nil, false
		}
		t.value = rest[n : uint64(n)+length]
		skip, ok = uint64(n)+length, true
	}
	if !ok || skip > uint64(len(rest)) {
		return t, nil, false
	}
	return t, rest[skip:], true
}

func (s *scale) add(bytes uint64) error {
	if s.left -= int64(bytes); s.left < 0 {
		return s.over
	}
	return nil
}

// message weighs what a struct refers to, without the struct itself.
func (s *scale) message(t reflect.Type, data []byte) error {
	if t == reflect.TypeFor[resource.Quantity]() {
		return s.quantity(data)
	}
	fields := layout(t)
	for len(data) > 0 {
		token, rest, ok := takeToken(data)
		if !ok {
			return errMalformed
		}
		data = rest
		at, known := fields[token.number]
		if !known {
			continue // The decoder skips it.
		}
		if err := s.field(at, token); err != nil {
			return err
		}
	}
	return nil
}

func (s *scale) field(at field, token token) error {
	switch at.of.Kind() {
	case reflect.Map:
		return s.pair(at.of, token.value)
	case reflect.Slice:
		if at.of.Elem().Kind() == reflect.Uint8 {
			break
		}
		// It grows to twice of what it needs, and numbers may be packed.
		if err := s.add(2 * uint64(at.of.Elem().Size())); err != nil {
			return err
		}
		at.of = at.of.Elem()
		if k := at.of.Kind(); k >= reflect.Bool && k <= reflect.Float64 {
			return s.add(16 * uint64(len(token.value)))
		}
	}
	return s.value(at, token.value)
}

// value weighs what is behind a pointer, or refers to more.
func (s *scale) value(at field, data []byte) error {
	if at.of.Kind() == reflect.Pointer {
		at.of = at.of.Elem()
		if err := s.add(uint64(at.of.Size())); err != nil {
			return err
		}
	}
	switch at.of.Kind() {
	case reflect.Struct:
		return s.message(at.of, data)
	case reflect.String:
		if !fitFor(at.name, data) {
			return breaks("the cluster sends an object with a %s that has more than %d bytes or control characters", at.name, longestName)
		}
	}
	return s.add(uint64(len(data)))
}

// pair weighs an entry of a map, with what the map takes for it.
func (s *scale) pair(t reflect.Type, data []byte) error {
	if err := s.add(2*uint64(t.Key().Size()+t.Elem().Size()) + 16); err != nil {
		return err
	}
	for len(data) > 0 {
		token, rest, ok := takeToken(data)
		if !ok {
			return errMalformed
		}
		data = rest
		of := t.Key()
		if token.number != 1 {
			of = t.Elem()
		}
		if err := s.field(field{of: of}, token); err != nil {
			return err
		}
	}
	return nil
}

// quantity refuses numbers that take minutes and gigabytes to be understood, such
// as 1e-1000000000.
func (s *scale) quantity(data []byte) error {
	for len(data) > 0 {
		token, rest, ok := takeToken(data)
		if !ok {
			return errMalformed
		}
		data = rest
		number := string(token.value)
		_, exponent, _ := strings.Cut(strings.ToLower(number), "e")
		if len(number) > longestNumber || len(strings.TrimLeft(exponent, "+-0")) > 2 {
			return breaks("the cluster sends a quantity that is out of bounds: of more than %d characters or with an exponent of more than 2 digits", longestNumber)
		}
	}
	return s.add(longestNumber)
}

// shown are the fields that get into messages.
var shown = map[string]bool{
	"name": true, "namespace": true, "nodeName": true, "providerID": true, "uid": true, "volumeName": true,
	"claimName": true, "persistentVolumeName": true, "attacher": true, "driver": true, "volumeHandle": true, "kind": true,
	"resourceVersion": true, "continue": true, "devicePath": true,
}

// fitFor tells whether a text may be shown, if the field is one that is.
func fitFor(name string, value []byte) bool {
	if !shown[name] {
		return true
	}
	if len(value) > longestName {
		return name == "continue" && len(value) <= 4*longestName
	}
	return utf8.Valid(value) && !strings.ContainsFunc(string(value), func(r rune) bool { return !unicode.IsPrint(r) })
}
