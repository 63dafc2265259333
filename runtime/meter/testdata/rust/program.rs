// A whole program in Rust: maps, sorting, formatting, floating point, panics caught by the shape of the data.
// Built by the tests: rustc --target wasm32-wasip1 -O program.rs
use std::collections::{BTreeMap, HashMap};

fn main() {
    let mut groups: HashMap<String, Vec<u64>> = HashMap::new();
    for i in 0..5000u64 {
        groups.entry(format!("k{}", i * i % 97)).or_default().push(i);
    }
    let sums: BTreeMap<_, u64> = groups.iter().map(|(k, v)| (k.clone(), v.iter().sum())).collect();
    for (k, v) in &sums {
        println!("{k} {v}");
    }
    let mut words: Vec<String> = (0..500).map(|i| format!("{:x}", i * 7919 % 1009)).collect();
    words.sort();
    println!("{}", words.join(" "));
    let x: f64 = "3.25".parse().unwrap();
    println!("{:.12} {:?}", x.sin() * x.sqrt(), "abc".parse::<i32>());
    let moved: Vec<u8> = (0..100_000u32).map(|i| i as u8).rev().collect();
    println!("{}", moved.iter().map(|&b| b as u64).sum::<u64>());
}
