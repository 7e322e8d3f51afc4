package lab

import (
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	tests := map[string]struct {
		text   string
		parent int
		used   time.Duration
	}{
		"a name with blanks": {"7 (web (a) b) S 3 7 7 0 -1 4194560 1 0 0 0 125 25 0 0 20 0 1 0 99", 3, 1500 * time.Millisecond},
		"cut short":          {"7 (web) S 3 7", 0, 0},
		"no numbers":         {"7 (web) S x 7 7 0 -1 4194560 1 0 0 0 125 25 0 0", 0, 0},
		"nothing":            {"", 0, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if parent, used := parseStat(test.text); parent != test.parent || used != test.used {
				t.Errorf("parent %d has %v, want %d and %v", parent, used, test.parent, test.used)
			}
		})
	}
}
