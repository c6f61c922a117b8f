package failpoint

// Passage is a pair of points around an operation. An error before it means that
// nothing was done; one after it, that it was and nobody knows.
type Passage struct{ Before, After *Point }

// NewPassage registers the points of a passage.
func NewPassage(before, after string) Passage { return Passage{New(before), New(after)} }

// Pass does something between the points.
func (p Passage) Pass(subject string, do func() error) error {
	if err := p.Before.Hit(subject); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return p.After.Hit(subject)
}
