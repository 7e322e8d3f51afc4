package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// subject is the kind of object that a verb is about.
type subject struct {
	// is returns true of words for the kind.
	is func(word string) bool
	// one, short and kind are what it is called, and other is said of any other kind.
	one, short, kind, other string
}

// name takes KIND/NAME and KIND NAME, as kubectl does.
func (s subject) name(args []string) (string, error) {
	words := slices.Clone(args)
	if len(words) > 0 {
		words = slices.Concat(strings.SplitN(words[0], "/", 2), words[1:])
	}
	switch {
	case len(words) == 0:
		return "", errors.New("name a " + s.one + ": " + s.short + "/NAME")
	case !s.is(words[0]) && len(words) == 1:
		return "", fmt.Errorf("say of what kind %q is: %s/%s", words[0], s.short, words[0])
	case !s.is(words[0]):
		return "", fmt.Errorf("%q %s: %s/NAME", words[0], s.other, s.short)
	case len(words) == 1 || words[1] == "":
		return "", fmt.Errorf("name a %s: %s/NAME", s.one, words[0])
	case len(words) > 2:
		return "", fmt.Errorf("one %s at a time, not also %s", s.one, strings.Join(words[2:], " "))
	}
	if wrong := validation.IsDNS1123Subdomain(words[1]); len(wrong) > 0 {
		return "", fmt.Errorf("%q is no name of a %s: %s", words[1], s.kind, wrong[0])
	}
	return words[1], nil
}
