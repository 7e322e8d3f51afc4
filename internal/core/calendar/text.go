package calendar

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// example shows how a window is written.
const example = "mon-fri 22:00-04:00 Europe/Berlin"

var (
	daily = []string{"", "daily"}
	week  = []v1alpha1.Weekday{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}
	names = []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}

	// windowText has days, hours and a zone.
	windowText = regexp.MustCompile(`^([^\d]*)([\d:]+)\s*-\s*([\d:]+)(?:\s+(\S+))?$`)
	spaces     = regexp.MustCompile(`\s+`)
)

// ParseWindow reads a window such as "mon-fri 22:00-04:00 Europe/Berlin". Days are a list of days
// and ranges, "daily" or absent; the time zone may be absent. Upper and lower case are the same.
func ParseWindow(text string) (v1alpha1.MaintenanceWindow, error) {
	parts := windowText.FindStringSubmatch(strings.TrimSpace(text))
	if parts == nil {
		return v1alpha1.MaintenanceWindow{}, fmt.Errorf("window %q must have days, hours and a time zone, as in %q", text, example)
	}
	w := v1alpha1.MaintenanceWindow{}
	var err error
	if w.Days, err = parseDays(spaces.ReplaceAllString(strings.ToLower(parts[1]), "")); err != nil {
		return v1alpha1.MaintenanceWindow{}, fmt.Errorf("window %q: %w", text, err)
	}
	if w.From, err = parseTime(parts[2]); err != nil {
		return v1alpha1.MaintenanceWindow{}, fmt.Errorf("window %q: start: %w", text, err)
	}
	if w.To, err = parseTime(parts[3]); err != nil {
		return v1alpha1.MaintenanceWindow{}, fmt.Errorf("window %q: end: %w", text, err)
	}
	if w.TimeZone, err = parseZone(parts[4]); err != nil {
		return v1alpha1.MaintenanceWindow{}, fmt.Errorf("window %q: %w", text, err)
	}
	return w, nil
}

// parseDays returns days in the order of a week that begins with Monday, or nil for all.
func parseDays(text string) ([]v1alpha1.Weekday, error) {
	if slices.Contains(daily, text) {
		return nil, nil
	}
	var has [7]bool
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := parseDay(from)
		if err != nil {
			return nil, err
		}
		last := first
		if isRange {
			if last, err = parseDay(to); err != nil {
				return nil, err
			}
		}
		for day := first; day != last; day = (day + 1) % 7 {
			has[day] = true
		}
		has[last] = true
	}
	var all []v1alpha1.Weekday
	for i, day := range week {
		if has[i] {
			all = append(all, day)
		}
	}
	return all, nil
}

func parseDay(text string) (int, error) {
	for i, name := range names {
		if text == name || text == name[:3] {
			return i, nil
		}
	}
	return 0, fmt.Errorf("day %q is none of mon, tue, wed, thu, fri, sat, sun and daily", text)
}

// parseTime also accepts 9:00, and 24:00 for the end of a day.
func parseTime(text string) (string, error) {
	switch {
	case text == "24:00":
		return "00:00", nil
	case len(text) == len("9:00"):
		text = "0" + text
	}
	if _, ok := readTime(text); !ok {
		return "", fmt.Errorf("time %q %s", text, notTime)
	}
	return text, nil
}

// parseZone finds Europe/Berlin for europe/berlin, and UTC for utc.
func parseZone(text string) (string, error) {
	for _, name := range []string{text, titleCase(text), strings.ToUpper(text)} {
		if _, err := loadZone(name); err == nil {
			return name, nil
		}
	}
	_, err := loadZone(text)
	return "", err
}

// titleCase begins each word with an upper case letter: America/New_York.
func titleCase(text string) string {
	begins := true
	return strings.Map(func(r rune) rune {
		letter := string(r)
		if begins {
			letter = strings.ToUpper(letter)
		} else {
			letter = strings.ToLower(letter)
		}
		begins = strings.ContainsRune("/_-", r)
		return []rune(letter)[0]
	}, text)
}

// Describe returns a window as ParseWindow reads it.
func Describe(w v1alpha1.MaintenanceWindow) string {
	zone := w.TimeZone
	if zone == "" {
		zone = "UTC"
	}
	return fmt.Sprintf("%s %s-%s %s", describeDays(w.Days), w.From, w.To, zone)
}

func describeDays(in []v1alpha1.Weekday) string {
	var parts []string
	for first := 0; first < len(week); first++ {
		last := first
		for last < len(week) && slices.Contains(in, week[last]) {
			last++
		}
		switch last - first {
		case 0:
			continue
		case 1:
			parts = append(parts, string(week[first]))
		case 2:
			parts = append(parts, string(week[first]), string(week[last-1]))
		default:
			parts = append(parts, fmt.Sprintf("%s-%s", week[first], week[last-1]))
		}
		first = last
	}
	if len(in) == 0 || len(parts) == 1 && parts[0] == "mon-sun" {
		return daily[1]
	}
	return strings.Join(parts, ",")
}
