// Package goal defines the measured rows, their goals, and their results.
package goal

// Row is one measurement and its goal.
type Row struct {
	// Name names the measurement. Results of several runs are compared by it.
	Name string
	// Unit of the value, such as "x" for a ratio.
	Unit string
	// Must is the value to reach, and Aim the value we work towards. Nil: no goal,
	// the row is only shown.
	Must, Aim *float64
	// Least means that smaller is better, and Must is an upper bound. Otherwise
	// Must is a lower bound.
	Least bool
}

// AtLeast returns a row with lower bounds.
func AtLeast(name, unit string, must, aim float64) Row {
	return Row{Name: name, Unit: unit, Must: &must, Aim: &aim}
}

// AtMost returns a row with upper bounds.
func AtMost(name, unit string, must, aim float64) Row {
	return Row{Name: name, Unit: unit, Must: &must, Aim: &aim, Least: true}
}

// Shown returns a row without a goal.
func Shown(name, unit string) Row { return Row{Name: name, Unit: unit} }

// NoAim returns r without an aim.
func (r Row) NoAim() Row {
	r.Aim = nil
	return r
}

// Finding is the measured value of a row.
type Finding struct {
	Row   string
	Value float64
	// Detail adds what the number does not show: absolute values, conditions, what
	// decided.
	Detail string
}

// Result is a row with its finding.
type Result struct {
	Row

	Value  float64
	Detail string
	// Missing means that the row was not measured. Detail says why.
	Missing bool
}

// Met reports whether the must is reached. A row without a must is met if it was
// measured.
func (r Result) Met() bool { return !r.Missing && r.reaches(r.Must) }

// AimMet reports whether the aim is reached.
func (r Result) AimMet() bool { return !r.Missing && r.reaches(r.Aim) }

func (r Result) reaches(bar *float64) bool {
	switch {
	case bar == nil:
		return true
	case r.Least:
		return r.Value <= *bar
	default:
		return r.Value >= *bar
	}
}

// Short returns how far the value is from the aim, as a share of the aim: 0.25 for
// three quarters of a lower bound, or for a quarter too much. It is zero if the aim
// is reached, and if there is none.
func (r Result) Short() float64 {
	switch {
	case r.Missing || r.Aim == nil || r.AimMet():
		return 0
	case r.Least && *r.Aim == 0:
		return r.Value
	case r.Least:
		return r.Value / *r.Aim - 1
	default:
		return 1 - r.Value / *r.Aim
	}
}

// Results joins an experiment's rows with its findings. why is the detail of rows
// without a finding.
func Results(rows []Row, found []Finding, why string) []Result {
	by := make(map[string]Finding, len(found))
	for _, f := range found {
		by[f.Row] = f
	}
	results := make([]Result, 0, len(rows))
	for _, row := range rows {
		f, ok := by[row.Name]
		if !ok {
			f.Detail = "not measured: " + why
		}
		results = append(results, Result{Row: row, Value: f.Value, Detail: f.Detail, Missing: !ok})
	}
	return results
}
