package shutdown

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// MaxScheduleFile is how many bytes of the file are read; its message to users may be long.
const MaxScheduleFile = 16 << 10

// farthest is the last time that the API can bear: later ones are no times.
var farthest = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// Schedule is a shutdown for which somebody has set a time, as with shutdown -r +15.
type Schedule struct {
	// At is when it begins.
	At time.Time
	// Type is what comes of it.
	Type string
}

// ParseSchedule reads the file /run/systemd/shutdown/scheduled. It is nil for a shutdown
// that is only rehearsed.
//
// Errors: it is not what systemd writes.
func ParseSchedule(text string) (*Schedule, error) {
	values := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && (key == "USEC" || key == "MODE") {
			values[key] = value
		}
	}
	if values["MODE"] == "" {
		return nil, errors.New("it says no MODE")
	}
	if strings.HasPrefix(values["MODE"], "dry-") {
		return nil, nil
	}
	usec, err := strconv.ParseInt(values["USEC"], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("USEC is no time: %w", err)
	}
	at := time.UnixMicro(usec).UTC()
	if usec <= 0 || !at.Before(farthest) {
		return nil, fmt.Errorf("USEC=%d is no time at which a machine can shut down", usec)
	}
	return &Schedule{At: at, Type: TypeOf(values["MODE"])}, nil
}

// TypeOf is what comes of a shutdown, in the words of the API.
func TypeOf(word string) string {
	switch word {
	case "reboot", "power-off", "halt", "kexec", "soft-reboot":
		return word
	case "poweroff":
		return "power-off"
	}
	return "unknown"
}
