package meter
import ("testing";"os")
func TestCmd(t *testing.T){ b,_ := os.ReadFile(os.Getenv("IN")); out,_,err := Rewrite(b, Limits{}); if err!=nil {t.Fatal(err)}; os.WriteFile(os.Getenv("OUT"), out, 0644)}
