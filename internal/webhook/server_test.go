package webhook

import (
	"time"
)

// believed is a clock that nobody doubts.
func believed() (time.Time, string) { return time.Now(), "" }
