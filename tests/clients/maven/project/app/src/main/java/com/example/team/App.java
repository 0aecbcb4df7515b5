package com.example.team;

/** Uses the library. */
public final class App {
    private App() {}

    public static void main(String[] arguments) {
        System.out.println("app 1.0-SNAPSHOT uses " + Library.greeting());
    }
}
