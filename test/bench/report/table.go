package report

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// Table writes lines as one table, failures below it.
func Table(out io.Writer, lines []Line) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SCENARIO\tCONTENDER\tVALUE\tNOISE (MIN..MAX)\tN\tDECLARED\tCPU\t× ORACLE\tGOAL\tRESULT")
	for _, line := range lines {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n",
			line.Scenario, line.Contender, line.value(), line.noise(), len(line.Values), seconds(line.Declared), seconds(line.CPU), line.ratio(), dash(line.Goal), line.result())
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	for _, line := range lines {
		if line.Failure == "" {
			continue
		}
		if _, err := fmt.Fprintf(out, "%s, %s: %s\n", line.Scenario, line.Contender, line.Failure); err != nil {
			return fmt.Errorf("write failures: %w", err)
		}
	}
	return nil
}

func (l Line) value() string {
	if l.Value == nil {
		return "-"
	}
	value := fmt.Sprintf("%.2f %s", *l.Value, l.Unit)
	switch l.Quantile {
	case 0.5:
		return value
	case 1:
		return value + " (max)"
	default:
		return fmt.Sprintf("%s (p%g)", value, 100*l.Quantile)
	}
}

func (l Line) noise() string {
	if len(l.Values) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f..%.2f", slices.Min(l.Values), slices.Max(l.Values))
}

// seconds is the median.
func seconds(values []float64) string {
	if len(values) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f s", Quantile(values, 0.5))
}

func (l Line) ratio() string {
	if l.Ratio == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", *l.Ratio)
}

func (l Line) result() string {
	switch {
	case l.Failure != "":
		return "FAILED"
	case l.Pass == nil:
		return "-"
	case *l.Pass:
		return "pass"
	default:
		return "MISS"
	}
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
