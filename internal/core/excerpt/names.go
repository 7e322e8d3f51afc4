package excerpt

import (
	"fmt"
	"strings"
)

// Names are the first of many names, at most so many, and how many more there are.
func Names(names []string, most int) string {
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}
