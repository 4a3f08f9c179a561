// Package goal says what is measured, what it must reach, and what became of it.
package goal

// Row is one line of the table: something measured, and what it is to be.
type Row struct {
	// Name says what is measured, and by it results of several runs are compared.
	Name string
	// Unit of the value, such as "x" for a ratio.
	Unit string
	// Must is what the value has to reach, Aim what we are after; nil where there
	// is none, and then the row only shows.
	Must, Aim *float64
	// Least: smaller is better, and Must is the most the value may be. Otherwise
	// Must is the least.
	Least bool
}

// AtLeast is a row whose value is to be must, aim or more.
func AtLeast(name, unit string, must, aim float64) Row {
	return Row{Name: name, Unit: unit, Must: &must, Aim: &aim}
}

// AtMost is a row whose value is to be must, aim or less.
func AtMost(name, unit string, must, aim float64) Row {
	return Row{Name: name, Unit: unit, Must: &must, Aim: &aim, Least: true}
}

// Shown is a row without a goal.
func Shown(name, unit string) Row { return Row{Name: name, Unit: unit} }

// NoAim is r with a must alone.
func (r Row) NoAim() Row {
	r.Aim = nil
	return r
}

// Finding is what was measured for the row of that name.
type Finding struct {
	Row   string
	Value float64
	// Detail says in words what the number alone does not: absolute values,
	// conditions, what decided.
	Detail string
}

// Result is a row, and what was found.
type Result struct {
	Row

	Value  float64
	Detail string
	// Missing: it could not be measured, and Detail says why.
	Missing bool
}

// Met reports whether the must was reached. A row without one is met when it was
// measured.
func (r Result) Met() bool { return !r.Missing && r.reaches(r.Must) }

// AimMet reports the same of the aim.
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

// Short says how far the value is from the aim, as a share of the aim: 0.25 for
// three quarters of it, or for a quarter too much. It is zero when the aim is
// reached, and when there is none.
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

// Results joins an experiment's rows with what was found. why stands where
// nothing was.
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
