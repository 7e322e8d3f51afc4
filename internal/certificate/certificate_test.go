package certificate

import (
	"cmp"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A certificate is replaced if API servers would not trust it for another half of its time, and
// only then.
func TestCertificateIsReplacedForAReason(t *testing.T) {
	t.Parallel()
	made := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ours := names("tides")
	data, err := issue(ours, made)
	if err != nil {
		t.Fatal(err)
	}
	other, err := issue(ours, made)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		months int
		names  []string
		change func(map[string][]byte)
		want   string
	}{
		"new":                      {},
		"nearly a year old":        {months: 11},
		"more than a year old":     {months: 13, want: "it is valid until 2028-03-01, which is less than half of its time"},
		"not there":                {change: func(d map[string][]byte) { clear(d) }, want: "there is none"},
		"for another namespace":    {names: names("moon"), want: "not ebbtide-webhook.moon.svc"},
		"with another key":         {change: func(d map[string][]byte) { d[corev1.TLSPrivateKeyKey] = other[corev1.TLSPrivateKeyKey] }, want: "private key does not match public key"},
		"of another authority":     {change: func(d map[string][]byte) { d[authorityKey] = other[authorityKey] }, want: "certificate signed by unknown authority"},
		"of an authority of words": {change: func(d map[string][]byte) { d[authorityKey] = []byte("trust me") }, want: "ca.crt has no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed, asked := maps.Clone(data), ours
			if test.change != nil {
				test.change(changed)
			}
			if test.names != nil {
				asked = test.names
			}
			got := fmt.Sprint(check(changed, asked, made.AddDate(0, test.months, 0)))
			if !strings.Contains(got, cmp.Or(test.want, "<nil>")) {
				t.Errorf("got %s, want %q", got, test.want)
			}
		})
	}
}

// The names of a long namespace are in the certificate, which has no place for them in its
// common name.
func TestCertificateIsForNamespacesOfAnyLength(t *testing.T) {
	t.Parallel()
	long := names(strings.Repeat("n", 63))
	data, err := issue(long, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := check(data, long, time.Now()); err != nil {
		t.Error(err)
	}
}
