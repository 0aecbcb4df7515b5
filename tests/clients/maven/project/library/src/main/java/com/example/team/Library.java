package com.example.team;

/** Something to compile against. */
public final class Library {
    private Library() {}

    public static String greeting() {
        return "library 1.0-SNAPSHOT";
    }
}
