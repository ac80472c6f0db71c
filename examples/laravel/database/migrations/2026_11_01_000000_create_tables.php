<?php

declare(strict_types=1);

use App\Models\User;
use Illuminate\Database\Migrations\Migration;
use Illuminate\Database\Schema\Blueprint;
use Illuminate\Support\Facades\Hash;
use Illuminate\Support\Facades\Schema;

return new class () extends Migration {
    public function up(): void
    {
        Schema::create('users', static function (Blueprint $table): void {
            $table->increments('id');
            $table->string('name')->unique();
            $table->string('password');
            $table->rememberToken();
        });
        Schema::create('customers', static function (Blueprint $table): void {
            $table->increments('id');
            $table->string('name', 100);
            $table->string('email');
            $table->boolean('welcomed')->default(false);
        });
        Schema::create('quotes', static function (Blueprint $table): void {
            $table->increments('id');
            $table->string('text');
        });
        Schema::create('failed_jobs', static function (Blueprint $table): void {
            $table->increments('id');
            $table->string('uuid')->unique();
            $table->text('connection');
            $table->text('queue');
            $table->longText('payload');
            $table->longText('exception');
            $table->timestamp('failed_at')->useCurrent();
        });
        foreach (['ada', 'zoe'] as $name) {
            User::create(['name' => $name, 'password' => Hash::make('secret')]);
        }
    }

    public function down(): void
    {
        Schema::dropIfExists('failed_jobs');
        Schema::dropIfExists('quotes');
        Schema::dropIfExists('customers');
        Schema::dropIfExists('users');
    }
};
